"""millrace_decode_tool as a Python object: decode_tool.cc says what goes to it and what comes back."""

import struct
import subprocess


class Tool:
    """The program under test, kept running; one job at a time."""

    def __init__(self, path):
        self.path = path
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.index_hits = 0  # images that an index has helped with, of the last job's way

    def ways(self):
        """The names of the ways in which this processor can decode, the usual one first."""
        return subprocess.run([self.path, "--ways"], check=True, capture_output=True, text=True).stdout.splitlines()

    def make(
        self,
        data,
        crop=(0, 0, 0, 0),
        size=(0, 0),
        window=(0, 0, 0, 0),
        flip=0,
        resampling=2,
        channels=0,
        fast=0,
        way=0,
        indexed=0,
    ):
        """(0, the tensor's bytes), or (a code, the message). `crop`: left, top, width, height. `indexed`: 1, or the file's identity."""
        header = struct.pack("=19i", *crop, *size, *window, flip, resampling, 0, 1, channels, fast, way, indexed, len(data))
        self.process.stdin.write(header + data)
        self.process.stdin.flush()
        head = self.process.stdout.read(12)
        if len(head) != 12:
            raise SystemExit(f"{self.path} ended early (status {self.process.wait()})")
        code, self.index_hits, size = struct.unpack("=3i", head)
        return code, self.process.stdout.read(size)
