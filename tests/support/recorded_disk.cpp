// Records what a process does to the files below DISK_ROOT, in the order in which it does it, to the
// file DISK_LOG; and fails one call of its choice. With DISK_NAMES_ALL no file there is without a name.
// Loaded before all other libraries.
//
// A record: the head below, two paths, the bytes that were written. tests/support/recorded_disk.py
// reads them.

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <vector>

namespace {

enum Kind : uint8_t { CREATE, WRITE, RESIZE, SYNC, RENAME, LINK, UNLINK, MKDIR, NOTE };

struct __attribute__((packed)) Head {
    Kind kind;
    uint8_t failed, synced;  // synced: written through O_DSYNC
    uint32_t path, other, size;
    uint64_t file;  // inode
    int64_t at;
};

std::mutex turn;
std::atomic<long> calls{0}, fails_at{0};
std::atomic<int> fails_with{0};

const std::string &root() {
    static const std::string found = getenv("DISK_ROOT") ? getenv("DISK_ROOT") : "";
    return found;
}

bool is_below(const std::string &path) {
    return !root().empty() && path.compare(0, root().size(), root()) == 0 &&
           (path.size() == root().size() || path[root().size()] == '/');
}

std::string path_of(int descriptor) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, sizeof path);
    return size < 0 ? "" : std::string(path, size);
}

std::string absolute(int folder, const char *path) {
    if (path[0] == '/' || folder == AT_FDCWD) return path;
    return path_of(folder) + "/" + path;
}

void append(Head head, const std::string &path, const std::string &other,
            const std::vector<iovec> &bytes = {}) {
    static const int log = syscall(SYS_openat, AT_FDCWD, getenv("DISK_LOG"),
                                   O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    head.path = path.size(), head.other = other.size(), head.size = 0;
    std::string record(sizeof head, '\0');
    record += path + other;
    for (const iovec &each : bytes) {
        record.append(static_cast<const char *>(each.iov_base), each.iov_len);
        head.size += each.iov_len;
    }
    memcpy(record.data(), &head, sizeof head);
    if (syscall(SYS_write, log, record.data(), record.size()) != ssize_t(record.size())) abort();
}

// Whether this call is the one that fails; errno says with what.
bool fails_now() {
    if (++calls != fails_at) return false;
    errno = fails_with;
    return true;
}

uint64_t inode(const struct stat &found) { return found.st_ino; }

uint64_t inode(int descriptor) {
    struct stat found;
    return fstat(descriptor, &found) ? 0 : inode(found);
}

uint64_t inode(const std::string &path) {
    struct stat found;
    return lstat(path.c_str(), &found) ? 0 : inode(found);
}

std::vector<iovec> beginning(const iovec *parts, int count, size_t left) {
    std::vector<iovec> found;
    for (int number = 0; number < count && left; number++) {
        size_t size = parts[number].iov_len < left ? parts[number].iov_len : left;
        found.push_back({parts[number].iov_base, size});
        left -= size;
    }
    return found;
}

template <typename F> F next(F, const char *name) { return (F)dlsym(RTLD_NEXT, name); }

template <typename Real>
ssize_t written(int descriptor, const iovec *parts, int count, off_t at, Real real) {
    if (!is_below(path_of(descriptor))) return real();
    std::lock_guard<std::mutex> held(turn);
    int flags = fcntl(descriptor, F_GETFL);
    if (flags & O_APPEND) {
        struct stat found;
        fstat(descriptor, &found);
        at = found.st_size;
    } else if (at < 0) {
        at = lseek(descriptor, 0, SEEK_CUR);
    }
    Head head{WRITE, 0, uint8_t((flags & O_DSYNC) != 0), 0, 0, 0, inode(descriptor), at};
    if (fails_now()) {
        int error = errno;
        head.failed = 1;
        append(head, "", "");
        errno = error;
        return -1;
    }
    ssize_t size = real();
    if (size > 0) append(head, "", "", beginning(parts, count, size));
    return size;
}

template <typename Real> int on_file(Kind kind, int descriptor, off_t at, Real real) {
    if (!is_below(path_of(descriptor))) return real();
    std::lock_guard<std::mutex> held(turn);
    Head head{kind, 0, 0, 0, 0, 0, inode(descriptor), at};
    head.failed = fails_now();
    int error = errno, answer = head.failed ? -1 : real();
    if (head.failed || answer == 0) append(head, "", "");
    if (head.failed) errno = error;
    return answer;
}

template <typename Real>
int on_names(Kind kind, const std::string &path, const std::string &other, Real real) {
    if (!is_below(path) && !is_below(other)) return real();
    std::lock_guard<std::mutex> held(turn);
    if (kind != UNLINK && fails_now()) return -1;
    int answer = real();
    if (answer == 0) append({kind, 0, 0, 0, 0, 0, inode(other.empty() ? path : other), 0}, path, other);
    return answer;
}

template <typename Real> int opened(const std::string &path, int flags, Real real) {
    bool is_unnamed = (flags & O_TMPFILE) == O_TMPFILE;
    if (!is_below(path) || !(is_unnamed || flags & (O_CREAT | O_TRUNC))) return real();
    if (is_unnamed && getenv("DISK_NAMES_ALL")) {
        errno = EOPNOTSUPP;
        return -1;
    }
    std::lock_guard<std::mutex> held(turn);
    bool is_new = is_unnamed || inode(path) == 0;
    if (is_new && fails_now()) return -1;
    int descriptor = real();
    if (descriptor >= 0 && is_new) {
        append({CREATE, 0, 0, 0, 0, 0, inode(descriptor), 0}, is_unnamed ? "" : path, "");
    }
    if (descriptor >= 0 && !is_new && (flags & O_TRUNC)) {
        append({RESIZE, 0, 0, 0, 0, 0, inode(descriptor), 0}, "", "");
    }
    return descriptor;
}

mode_t mode_in(int flags, va_list rest) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0;
}

}  // namespace

#define OPENS(NAME)                                                                               \
    extern "C" int NAME(const char *path, int flags, ...) {                                       \
        va_list rest;                                                                             \
        va_start(rest, flags);                                                                    \
        mode_t mode = mode_in(flags, rest);                                                       \
        va_end(rest);                                                                             \
        return opened(path, flags, [&] { return next(NAME, #NAME)(path, flags, mode); });         \
    }
OPENS(open)
OPENS(open64)

#define OPENS_AT(NAME)                                                                            \
    extern "C" int NAME(int folder, const char *path, int flags, ...) {                           \
        va_list rest;                                                                             \
        va_start(rest, flags);                                                                    \
        mode_t mode = mode_in(flags, rest);                                                       \
        va_end(rest);                                                                             \
        return opened(absolute(folder, path), flags,                                              \
                      [&] { return next(NAME, #NAME)(folder, path, flags, mode); });              \
    }
OPENS_AT(openat)
OPENS_AT(openat64)

extern "C" ssize_t write(int descriptor, const void *from, size_t size) {
    iovec part{const_cast<void *>(from), size};
    return written(descriptor, &part, 1, -1,
                   [&] { return next(write, "write")(descriptor, from, size); });
}

extern "C" ssize_t writev(int descriptor, const iovec *parts, int count) {
    return written(descriptor, parts, count, -1,
                   [&] { return next(writev, "writev")(descriptor, parts, count); });
}

#define WRITES_AT(NAME)                                                                           \
    extern "C" ssize_t NAME(int descriptor, const void *from, size_t size, off_t at) {            \
        iovec part{const_cast<void *>(from), size};                                               \
        return written(descriptor, &part, 1, at,                                                  \
                       [&] { return next(NAME, #NAME)(descriptor, from, size, at); });            \
    }
WRITES_AT(pwrite)
WRITES_AT(pwrite64)

#define WRITES_PARTS_AT(NAME)                                                                     \
    extern "C" ssize_t NAME(int descriptor, const iovec *parts, int count, off_t at) {            \
        return written(descriptor, parts, count, at,                                              \
                       [&] { return next(NAME, #NAME)(descriptor, parts, count, at); });          \
    }
WRITES_PARTS_AT(pwritev)
WRITES_PARTS_AT(pwritev64)

#define RESIZES(NAME)                                                                             \
    extern "C" int NAME(int descriptor, off_t size) noexcept {                                    \
        return on_file(RESIZE, descriptor, size,                                                  \
                       [&] { return next(NAME, #NAME)(descriptor, size); });                      \
    }
RESIZES(ftruncate)
RESIZES(ftruncate64)

extern "C" int fsync(int descriptor) {
    return on_file(SYNC, descriptor, 0, [&] { return next(fsync, "fsync")(descriptor); });
}

extern "C" int fdatasync(int descriptor) {
    return on_file(SYNC, descriptor, 0, [&] { return next(fdatasync, "fdatasync")(descriptor); });
}

extern "C" int rename(const char *from, const char *to) noexcept {
    return on_names(RENAME, from, to, [&] { return next(rename, "rename")(from, to); });
}

extern "C" int renameat(int folder, const char *from, int other, const char *to) noexcept {
    return on_names(RENAME, absolute(folder, from), absolute(other, to),
                    [&] { return next(renameat, "renameat")(folder, from, other, to); });
}

extern "C" int link(const char *from, const char *to) noexcept {
    return on_names(LINK, from, to, [&] { return next(link, "link")(from, to); });
}

extern "C" int linkat(int folder, const char *from, int other, const char *to, int flags) noexcept {
    return on_names(LINK, absolute(folder, from), absolute(other, to),
                    [&] { return next(linkat, "linkat")(folder, from, other, to, flags); });
}

extern "C" int unlink(const char *path) noexcept {
    return on_names(UNLINK, path, "", [&] { return next(unlink, "unlink")(path); });
}

extern "C" int unlinkat(int folder, const char *path, int flags) noexcept {
    return on_names(UNLINK, absolute(folder, path), "",
                    [&] { return next(unlinkat, "unlinkat")(folder, path, flags); });
}

extern "C" int rmdir(const char *path) noexcept {
    return on_names(UNLINK, path, "", [&] { return next(rmdir, "rmdir")(path); });
}

extern "C" int mkdir(const char *path, mode_t mode) noexcept {
    return on_names(MKDIR, path, "", [&] { return next(mkdir, "mkdir")(path, mode); });
}

extern "C" int mkdirat(int folder, const char *path, mode_t mode) noexcept {
    return on_names(MKDIR, absolute(folder, path), "",
                    [&] { return next(mkdirat, "mkdirat")(folder, path, mode); });
}

// Copies inside the kernel would be seen by nobody; callers fall back to reading and writing.
extern "C" ssize_t sendfile(int to, int from, off_t *at, size_t size) noexcept {
    if (is_below(path_of(to))) return errno = ENOSYS, -1;
    return next(sendfile, "sendfile")(to, from, at, size);
}

extern "C" ssize_t sendfile64(int to, int from, off_t *at, size_t size) noexcept {
    if (is_below(path_of(to))) return errno = ENOSYS, -1;
    return next(sendfile64, "sendfile64")(to, from, at, size);
}

extern "C" ssize_t copy_file_range(int from, off_t *at, int to, off_t *there, size_t size,
                                   unsigned flags) {
    if (is_below(path_of(to))) return errno = ENOSYS, -1;
    return next(copy_file_range, "copy_file_range")(from, at, to, there, size, flags);
}

// --- for the process under test ------------------------------------------------------------------

extern "C" void disk_note(const char *text) {
    std::lock_guard<std::mutex> held(turn);
    append({NOTE, 0, 0, 0, 0, 0, 0, 0}, text, "");
}

// The call with this number, counted from 1 from now on, fails with this errno; 0: none does.
extern "C" void disk_fail(long number, int error) {
    std::lock_guard<std::mutex> held(turn);
    calls = 0, fails_at = number, fails_with = error;
}

extern "C" long disk_calls() { return calls; }
