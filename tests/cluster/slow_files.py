"""One file of a folder that can be read only slowly, as over a bad network:  slow_files.py FOLDER FILE BYTES_PER_SECOND
A file system of its own (FUSE) at FOLDER until it is killed. It serves one read at a time and sleeps before each answer."""
import ctypes
import errno
import os
import stat
import struct
import sys
import time

LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, BATCH_FORGET = (
    1, 2, 3, 14, 15, 18, 25, 26, 27, 28, 29, 36, 42)
ROOT, FILE = 1, 2  # numbers of the two nodes
FOREVER = 3600  # seconds for which the kernel may remember what it was told
HEADER = struct.Struct("<IIQQIIII")


def attributes(node, size):
    mode = stat.S_IFREG | 0o444 if node == FILE else stat.S_IFDIR | 0o555
    return struct.pack("<6Q10I", node, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


class SlowFile:
    def __init__(self, path, rate):
        self.name, self.rate = os.path.basename(path).encode(), rate
        self.file = os.open(path, os.O_RDONLY)
        self.size = os.fstat(self.file).st_size

    def answer(self, operation, node, body):
        """The answer's bytes, an error number, or None where none is expected."""
        if operation == INIT:
            major, minor, readahead = struct.unpack_from("<III", body)
            return struct.pack("<IIIIHHIIHHI7I", major, min(minor, 31), readahead, 0, 0, 0, 4096, 1, 0, 0, 0, *[0] * 7)
        if operation == LOOKUP:
            if body.rstrip(b"\0") != self.name:
                return errno.ENOENT
            return struct.pack("<4QII", FILE, 0, FOREVER, FOREVER, 0, 0) + attributes(FILE, self.size)
        if operation == GETATTR:
            return struct.pack("<QII", FOREVER, 0, 0) + attributes(node, self.size)
        if operation in (OPEN, OPENDIR):
            return struct.pack("<QII", 0, 0, 0)
        if operation == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            data = os.pread(self.file, size, offset)
            time.sleep(len(data) / self.rate)
            return data
        if operation in (READDIR, RELEASE, RELEASEDIR, FLUSH):
            return b""
        return None if operation in (FORGET, BATCH_FORGET, INTERRUPT) else errno.ENOSYS


def main(folder, path, rate):
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
    if ctypes.CDLL(None, use_errno=True).mount(b"slow", folder.encode(), b"fuse", 0, options.encode()):
        raise OSError(ctypes.get_errno(), "mount")
    file = SlowFile(path, float(rate))
    while True:
        request = os.read(device, 1 << 20)
        _, operation, unique, node, *_ = HEADER.unpack_from(request)
        answer = file.answer(operation, node, request[HEADER.size:])
        if answer is None:
            continue
        error, data = (-answer, b"") if isinstance(answer, int) else (0, answer)
        os.write(device, struct.pack("<IiQ", 16 + len(data), error, unique) + data)


if __name__ == "__main__":
    main(*sys.argv[1:])
