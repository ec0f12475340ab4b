"""A disk that fails when a test says so: a library, loaded before all others into the process under
test, that answers writes of stores' data files with an error.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCE = r"""
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

static const char DATA_FILE[] = "/data.mdb";

// Whether this kind of call is to fail now, on a data file; errno says with what.
static bool fails(int descriptor, const char *kind) {
    char link[64], path[4096], asked[16];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, sizeof path - 1), end = sizeof DATA_FILE - 1;
    if (size < end || strncmp(path + size - end, DATA_FILE, end)) return false;
    FILE *file = fopen(getenv("DISK_FAULT"), "r");
    if (!file) return false;
    int number = 0;
    bool found = fscanf(file, "%15s %d", asked, &number) == 2 && !strcmp(asked, kind);
    fclose(file);
    if (found) errno = number;
    return found;
}

template <typename F> static F next(F, const char *name) { return (F)dlsym(RTLD_NEXT, name); }

extern "C" int fdatasync(int descriptor) {
    return fails(descriptor, "sync") ? -1 : next(fdatasync, "fdatasync")(descriptor);
}

extern "C" ssize_t writev(int descriptor, const iovec *parts, int count) {
    if (fails(descriptor, "pages")) return -1;
    return next(writev, "writev")(descriptor, parts, count);
}

static ssize_t write_at(const char *name, int descriptor, const void *from, size_t size, off_t at) {
    if (fails(descriptor, size < 512 ? "meta" : "pages")) return -1;
    return next(pwrite, name)(descriptor, from, size, at);
}

extern "C" ssize_t pwrite(int descriptor, const void *from, size_t size, off_t at) {
    return write_at("pwrite", descriptor, from, size, at);
}

extern "C" ssize_t pwrite64(int descriptor, const void *from, size_t size, off_t at) {
    return write_at("pwrite64", descriptor, from, size, at);
}
"""


class FaultyDisk:
    """environment: what the process under test has to be started with"""

    def __init__(self, directory: Path):
        self._fault = directory / "disk-fault"
        library = directory / "disk-fault.so"
        subprocess.run(
            ["c++", "-shared", "-fPIC", "-o", library, "-x", "c++", "-", "-ldl"],
            input=SOURCE,
            text=True,
            check=True,
        )
        self.environment = {"LD_PRELOAD": str(library), "DISK_FAULT": str(self._fault)}

    def fail(self, kind: str, number: int) -> None:
        """From now on calls of this kind get this errno. kind: "pages", "sync", or "meta", which is
        a commit's last step.
        """
        self._fault.write_text(f"{kind} {number}")

    def work(self) -> None:
        self._fault.unlink(missing_ok=True)
