// What is asked of datasets and epochs becomes checked values. Pure functions, thread-safe.
#pragma once

#include "daemon/model/epoch.h"
#include "daemon/model/limits.h"
#include "daemon/serve/parse/client_request.h"
#include "daemon/serve/parse/dataset_table.h"
#include "millrace/v1/dataset.pb.h"
#include "proto/base/result.h"

namespace millrace {

// Errors: kInvalid naming the field.
Result<OpenDatasetRequest> parse_open_dataset(const v1::OpenDataset& request_untrusted, const Limits& limits);

// The paths are moved out of it, and looked at later, as they are taken (fetch/list/client_file_list.h). kInvalid naming the field.
Result<ListFilesRequest> parse_list_files(v1::ListFiles& request_untrusted, const Limits& limits);
// The same of samples that are parts of files; numbers of files, offsets and lengths, too, are looked at as they are taken.
Result<ListFilesRequest> parse_list_parts(v1::ListParts& request_untrusted, const Limits& limits);

// Errors name the field: kInvalid; kNotFound for a dataset that is not open.
Result<NameFilesRequest> parse_name_files(const v1::NameFiles& request_untrusted, const DatasetTable& datasets);

// What is wrong with them goes with them, for it ends their epoch.
GiveBatchesRequest parse_give_batches(const v1::GiveBatches& request_untrusted);

// Errors name the field: kInvalid; kNotFound for a dataset that is not open; kPrecondition for a position that was
// taken in another epoch or dataset, saying what differs.
Result<EpochRequest> parse_start_epoch(const v1::StartEpoch& request_untrusted, const Limits& limits,
                                       const DatasetTable& datasets);

}  // namespace millrace
