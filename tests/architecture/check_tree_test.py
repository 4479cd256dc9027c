#!/usr/bin/env python3
"""A check that cannot fail is none: every rule of check_tree.py, broken on purpose."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_tree  # noqa: E402
import rooms  # noqa: E402
import wording  # noqa: E402

ONCE = "// What it is.\n#pragma once\n"
GOOD = {
    "README.md": "Words about [results](proto/base/result.h) and [others](https://example.org/x).\n",
    "proto/base/result.h": ONCE,
    "proto/shm/layout.h": ONCE + '#include "proto/base/result.h"\n',
    "daemon/model/batch.h": ONCE + "#include <vector>\n",
    "daemon/fetch/fetcher.h": ONCE + '#include "daemon/model/batch.h"\n',
    "daemon/fetch/files/reader.h": ONCE,
    "daemon/serve/grpc.cc": '#include "millrace/v1/session.grpc.pb.h"\n',
    "daemon/pipeline/pipeline.cc": '#include "daemon/fetch/fetcher.h"\n',
    "daemon/main.cc": '#include "daemon/fetch/files/reader.h"\n',
    "kernels/jpeg/header.h": ONCE,
    "kernels/tensor/spec.h": ONCE,
    "kernels/cpu/resample.h": ONCE + '#include <immintrin.h>\n#include "kernels/jpeg/header.h"\n#include "kernels/tensor/spec.h"\n',
    "kernels/cuda/plan/plan.h": ONCE + '#include "kernels/jpeg/header.h"\n#include "kernels/tensor/spec.h"\n',
    "client/include/millrace/client.h": ONCE + "#include <string>\n",
    "client/src/client.cc": '#include "millrace/client.h"\n#include <grpcpp/grpcpp.h>\n',
    "tests/unit/fetch_test.cc": '#include "daemon/fetch/fetcher.h"\n',
}


def broken(path, text):
    return check_tree.violations({**GOOD, path: text})


class CheckTree(unittest.TestCase):
    def assert_one(self, path, text, *words):
        found = broken(path, text)
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_a_good_tree_has_no_violation(self):
        self.assertEqual(check_tree.violations(GOOD), [])

    def test_a_stage_may_not_include_another_stage(self):
        self.assert_one("daemon/plan/plan.cc", '#include "daemon/fetch/fetcher.h"\n', "daemon/plan may not include daemon/fetch")

    def test_the_client_may_not_include_the_daemon(self):
        self.assert_one("client/src/x.cc", '#include "daemon/model/batch.h"\n', "client may not include daemon/model")

    def test_the_daemon_may_not_include_the_client(self):
        self.assert_one("daemon/serve/x.cc", '#include "millrace/client.h"\n', "daemon/serve may not include client")

    def test_kernels_use_nothing_of_ours_but_kernels(self):
        for room in ("base", "jpeg", "tensor", "cpu", "cuda"):
            self.assert_one(f"kernels/{room}/x.cc", '#include "proto/base/result.h"\n', f"kernels/{room} may not include proto/base")

    def test_kernels_for_one_device_know_none_for_another(self):
        self.assert_one("kernels/cuda/x.cc", '#include "kernels/cpu/resample.h"\n', "kernels/cuda may not include kernels/cpu")
        self.assert_one("kernels/cpu/x.cc", '#include "kernels/cuda/plan/plan.h"\n', "kernels/cpu may not include kernels/cuda")

    def test_what_kernels_share_knows_none_of_them_nor_each_other(self):
        for room, other in (("jpeg", "cpu/resample.h"), ("tensor", "cpu/resample.h"), ("jpeg", "tensor/spec.h"), ("tensor", "jpeg/header.h")):
            self.assert_one(f"kernels/{room}/x.cc", f'#include "kernels/{other}"\n', f"kernels/{room} may not include kernels/")

    def test_a_file_lies_in_a_room_of_the_kernels(self):
        self.assert_one("kernels/x.h", ONCE, "kernels/x.h", "no module")

    def test_no_product_file_includes_itself(self):
        self.assert_one("daemon/model/x.h", ONCE + '#include "daemon/model/x.h"\n', "daemon/model/x.h -> daemon/model/x.h")

    def test_product_files_include_each_other_in_no_circle(self):
        for folder, spelled in (("kernels/cpu", "kernels/cpu"), ("client/include/millrace", "millrace")):
            ring = {f"{folder}/{name}.h": ONCE + f'#include "{spelled}/{other}.h"\n' for name, other in ("ab", "bc", "ca")}

            found = check_tree.violations({**GOOD, **ring, f"{folder}/d.h": ONCE + f'#include "{spelled}/b.h"\n'})

            self.assertEqual(found, [f"{folder}/a.h: includes itself: " + " -> ".join(f"{folder}/{name}.h" for name in "abca")])

    def test_a_module_is_not_used_by_way_of_anothers_header(self):
        fetch = ONCE + "class InputRing {\n};\nusing Verdict = int;\ninline constexpr int kMost = 3;\nint listed_in(int folder);\n"
        way = {"daemon/fetch/fetcher.h": fetch, "daemon/pipeline/pipeline.h": ONCE + '#include "daemon/fetch/fetcher.h"\n'}
        for use in ("InputRing* ring;", "Verdict found;", "int n = kMost;", "int n = listed_in(3);"):
            text = '#include "daemon/pipeline/pipeline.h"\n' + use + "\n"

            found = check_tree.violations({**GOOD, **way, "daemon/serve/x.cc": text})

            self.assertEqual(len(found), 1, (use, found))
            self.assertIn("daemon/serve/x.cc: names ", found[0])
            self.assertIn("of daemon/fetch/fetcher.h: daemon/serve may not include daemon/fetch", found[0])
            for allowed in ("daemon/pipeline/x.cc", "daemon/process/x.cc"):
                self.assertEqual(check_tree.violations({**GOOD, **way, allowed: text}), [])

    def test_a_name_that_is_not_out_of_reach_is_not_borrowed(self):
        way = {
            "daemon/fetch/fetcher.h": ONCE + "class InputRing {\n};\nint listed_in(int folder);\n",
            "daemon/pipeline/pipeline.h": ONCE + '#include "daemon/fetch/fetcher.h"\n',
        }
        include = '#include "daemon/pipeline/pipeline.h"\n'
        for text in (
            include + "// An InputRing.\n",
            include + 'const char* text = "InputRing";\n',
            include + "int n = pipeline.listed_in(3);\n",
            include + "int n = pipeline->listed_in(3) + Tree::listed_in(4);\n",
            include + "class InputRing {\n};\nInputRing own;\n",
            "class InputRing;\n",  # not reached: nothing of it is used
        ):
            self.assertEqual(check_tree.violations({**GOOD, **way, "daemon/serve/x.cc": text}), [], text)

    def test_folders_need_each_other_in_no_circle(self):
        ring = {
            "daemon/backend/table.h": ONCE,
            "daemon/backend/table.cc": '#include "daemon/backend/cpu/cpu.h"\n#include "daemon/backend/table.h"\n',
            "daemon/backend/cpu/cpu.h": ONCE + '#include "daemon/backend/table.h"\n',
        }

        found = check_tree.violations({**GOOD, **ring})

        self.assertEqual(found, ["daemon/backend/cpu/cpu: needs and is needed by daemon/backend/table"])
        within = {path.replace("/cpu/cpu", "/cpu"): text.replace("/cpu/cpu", "/cpu") for path, text in ring.items()}
        self.assertEqual(check_tree.violations({**GOOD, **within}), [])

    def test_what_is_not_mended_yet_is_excused_until_it_is(self):
        line = "daemon/serve/x.cc: names InputRing, of daemon/fetch/fetcher.h"

        self.assertEqual(list(check_tree.not_mended([line], {"daemon/serve/x.cc: names InputRing": "why"})), [])
        self.assertEqual(list(check_tree.not_mended([line], {})), [line])
        stale = list(check_tree.not_mended([], {"daemon/serve/x.cc: names InputRing": "why"}))
        self.assertEqual(len(stale), 1)
        self.assertIn("delete the row", stale[0])

    def test_what_two_files_include_is_no_circle(self):
        self.assertEqual(broken("kernels/cpu/x.cc", '#include "kernels/cpu/resample.h"\n#include "kernels/jpeg/header.h"\n'), [])

    def test_only_who_speaks_grpc_sees_generated_code(self):
        self.assert_one("daemon/pipeline/x.cc", '#include "millrace/v1/batch.pb.h"\n', "may not include proto/rpc")

    def test_a_test_may_not_skip_silently(self):
        for text in (
            'WARN("SKIPPED: no room");',
            'WARN("this processor lacks " << name);',
            "if (kSanitized) return;",
            "  if (!is_root()) return;",
            "if (geteuid() != 0) return;",
            "if (!is_available(Target::kAvx512)) return;",
            "return 77",
            "sys.exit(77)",
        ):
            self.assert_one("tests/unit/x_test.cc", text + "\n", "skip.h", "x_test.cc:1")

        self.assertEqual(broken("tests/unit/x_test.cc", 'if (kSanitized) return skip_loudly("memory");\n'), [])
        self.assertEqual(broken("tests/support/skip.cc", '"SKIPPED: "\n'), [])
        self.assertEqual(broken("daemon/serve/x.cc", "if (!is_root()) return;\n"), [])

    def test_the_pipeline_sees_a_stage_by_its_interface_only(self):
        self.assert_one("daemon/pipeline/x.cc", '#include "daemon/fetch/files/reader.h"\n', "interface only")

    def test_the_product_does_not_know_its_tests(self):
        self.assert_one("daemon/main.cc", '#include "tests/unit/fetch_test.cc"\n', "does not know its tests")

    def test_an_include_starts_at_the_root(self):
        self.assert_one("daemon/fetch/x.cc", '#include "fetcher.h"\n', "not a file of the tree")

    def test_an_indented_include_counts(self):
        self.assert_one("daemon/plan/x.cc", '  #  include "daemon/fetch/fetcher.h"\n', "may not include")

    def test_a_module_without_a_row_is_noticed(self):
        self.assert_one("daemon/misc/x.cc", "", "no module of the architecture")

    def test_device_headers_stay_in_their_folders(self):
        self.assert_one("daemon/slots/x.cc", "#include <cuda_runtime.h>\n", "allowed only in")
        self.assert_one("daemon/backend/cpu/x.cc", "#include <xrt/xrt_device.h>\n", "allowed only in")

    def test_public_headers_need_only_the_standard_library(self):
        self.assert_one("client/include/millrace/x.h", ONCE + "#include <grpcpp/grpcpp.h>\n", "standard library")
        self.assert_one("client/include/millrace/x.h", ONCE + '#include "proto/shm/layout.h"\n', "installed with it")

    def test_every_header_is_included_once(self):
        self.assert_one("daemon/model/x.h", "struct X {};\n", "#pragma once")

    def test_a_file_over_the_limit_is_named(self):
        self.assert_one("daemon/model/x.cc", "\n" * (check_tree.MAX_LINES + 1), "split it")

    def test_left_overs_are_named_with_their_line(self):
        self.assert_one("daemon/model/x.cc", "\n// TO" + "DO: later\n", "x.cc:2")

    def test_vague_names_are_named(self):
        self.assert_one("daemon/model/x.cc", "class SlotManager {\n};\n", "SlotManager")

    def test_the_top_level_is_agreed(self):
        self.assert_one("notes.txt", "", "top")

    def test_a_word_that_leaves_open_who_is_meant_is_named(self):
        self.assert_one("daemon/model/x.cc", "// For who" + "ever asks.\n", "x.cc:1", "name who is meant")

    def test_a_long_line_of_prose_is_named(self):
        page = "daemon/doc/x.md"
        self.assert_one(page, "Short.\n\n- " + "word " * 30 + "\n", "x.md:3", "columns")
        kept = ["```\n{}\n```\n", "Of code:\n\n    {}\n", "| {} |\n|---|\n", "<!-- x: from here -->\n{}\n<!-- to here -->\n"]
        for text in kept:
            self.assertEqual(broken(page, text.format("word " * 30)), [], text)

    def test_a_sentence_too_many_of_too_many_words_is_named(self):
        long, short = "A word " * 20 + "ends.\n", "One sentence ends here. " * 20
        most = wording.MOST_LONG_SENTENCES
        self.assertEqual(list(wording.too_many_long_sentences({"x.md": long * most, "y.md": short})), [])
        (found,) = wording.too_many_long_sentences({"x.md": long * most, "y.md": long})
        self.assertIn(f"{most + 1} sentences", found)

    def test_a_link_into_the_tree_leads_somewhere(self):
        self.assert_one("daemon/doc/x.md", "[gone](../fetch/gone.h#there)\n", "gone.h, which is not in the tree")

    def test_code_on_the_first_page_is_that_of_an_example(self):
        example = {"client/examples/few.cc": '#include "millrace/client.h"\nint main() {}\n'}
        self.assertEqual(check_tree.violations({**GOOD, **example, "README.md": "```cpp\nint main() {}\n```\n"}), [])
        self.assert_one("README.md", "```cpp\nint mian() {}\n```\n", "int mian() {}")

    def test_a_document_names_tests_that_there_are(self):
        test = {"tests/system/a_test.cc": 'TEST_CASE("a \\"slow\\" disk "\n          "hurts nobody", "[system]") {}\n'}
        page = "daemon/doc/faults.md"
        named = {**GOOD, **test, page: '| a disk | *a "slow" disk hurts nobody* | **bold** 2 * 3 * 4 |\n'}
        self.assertEqual(check_tree.violations(named), [])
        unknown = check_tree.violations({**named, page: "*a slow disk hurts nobody*\n"})
        self.assertEqual(unknown, [f"{page}: names the test 'a slow disk hurts nobody', which there is not"])

    def test_a_type_that_library_and_daemon_share_is_defined_once(self):
        shared = {"proto/base/recipe.h": ONCE + "enum class DType : int { kUint8 };\nstruct Recipe {\n  struct Part {};\n};\n"}
        own = {"daemon/model/x.h": ONCE + "struct Part {\n};\nstruct Recipe;\n", "kernels/cpu/x.h": ONCE + "struct Recipe {\n};\n"}
        self.assertEqual(check_tree.violations({**GOOD, **shared, **own}), [])
        for text in ("struct Recipe {\n};\n", "enum class DType { kUint8 };\n", "class MILLRACE_API Recipe final : Base {\n};\n"):
            found = check_tree.violations({**GOOD, **shared, "client/include/millrace/x.h": ONCE + text})
            self.assertEqual(len(found), 1, found)
            self.assertIn("which proto/base/recipe.h defines for everyone", found[0])

    def test_a_recipe_is_read_in_one_place(self):
        recipe, step = check_tree.RECIPE_SCHEMAS
        schema = {recipe: "message Size {\n}\nmessage Crop {\n}\n", step: "enum Filter {\n}\n"}
        reading = {"proto/rpc/recipe_message.cc": "v1::Crop x;\n", "daemon/serve/x.cc": "v1::Size x;\nv1::Submit y;\n"}
        self.assertEqual(check_tree.violations({**GOOD, **schema, **reading}), [])
        for text in ("v1::Crop x;\n", "v1::Filter x;\n"):
            found = check_tree.violations({**GOOD, **schema, "daemon/serve/x.cc": text})
            self.assertEqual(len(found), 1, found)
            self.assertIn("daemon/serve/x.cc: names v1::", found[0])

    def test_a_folder_has_twenty_sources_with_their_headers(self):
        folder = {f"daemon/plan/part_{i}{ending}": ONCE for i in range(rooms.MAX_UNITS) for ending in (".h", ".cc")}
        self.assertEqual(check_tree.violations({**GOOD, **folder}), [])
        more = {**GOOD, **folder, "daemon/plan/one_more.cc": "int x;\n"}
        self.assertEqual(len(check_tree.violations(more)), 1)
        self.assertIn("daemon/plan: 21 sources", check_tree.violations(more)[0])

    def test_a_small_header_has_two_users_or_lies_with_its_only_one(self):
        tree = {"daemon/plan/a.h": ONCE, "daemon/plan/a.cc": '#include "daemon/plan/a.h"\n', "daemon/plan/b.cc": '#include "daemon/plan/a.h"\n'}
        found = list(rooms.lonely_units(tree))
        self.assertEqual(len(found), 1, found)
        self.assertIn("daemon/plan/a.h: 3 lines that daemon/plan/b alone needs", found[0])
        other = {"tests/unit/a_test.cc": '#include "daemon/plan/a.h"\n'}
        self.assertEqual(list(rooms.lonely_units({**tree, **other})), [])
        large = {"daemon/plan/a.cc": tree["daemon/plan/a.cc"] + "int x;\n" * rooms.SMALL}
        self.assertEqual(list(rooms.lonely_units({**tree, **large})), [])

    def test_every_allowed_module_has_a_row(self):
        named = set().union(*check_tree.MAY_INCLUDE.values()) - {"*"}
        self.assertEqual(named - set(check_tree.MAY_INCLUDE), set())


if __name__ == "__main__":
    unittest.main()
