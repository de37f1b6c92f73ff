/* One attempt per call: `try NAME ARGUMENTS...` ends with 0 if the attempt succeeded. As in exit codes, functions here
 * return 0 for success. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define X32 0x40000000
#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static int is(const char *name, const char *wanted) { return strcmp(name, wanted) == 0; }
static int failed(long result) { return result < 0; }
static int unwritten(int fd) { return fd < 0 || write(fd, "x", 1) != 1; }

static char secret[32] = "secret of the victim";

/* Waits to be attacked: has a file open as descriptor 3, and writes where its secret is. */
static int victim(const char *file, const char *address) {
  int fd = open(file, O_RDWR);
  if (fd != 3 && dup2(fd, 3) < 0) return 1;
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  char part[256];
  snprintf(part, sizeof part, "%s.part", address);
  FILE *out = fopen(part, "w");
  fprintf(out, "%p", (void *)secret);
  fclose(out);
  rename(part, address);
  for (;;) pause();
}

static int reaches(int family, const char *port) {
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(atoi(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(atoi(port)), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  int fd = socket(family, SOCK_STREAM, 0);
  return failed(family == AF_INET ? connect(fd, (void *)&four, sizeof four) : connect(fd, (void *)&six, sizeof six));
}

static int reaches_named(const char *path, int is_abstract) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  strncpy(to.sun_path + is_abstract, path, sizeof to.sun_path - 2);
  socklen_t length = offsetof(struct sockaddr_un, sun_path) + is_abstract + strlen(path);
  return failed(connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&to, length));
}

/* What stays allowed: two connected sockets. */
static int pair(void) {
  int ends[2];
  char byte;
  return failed(socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) || write(ends[0], "x", 1) != 1 || read(ends[1], &byte, 1) != 1;
}

static int reap(pid_t child) {
  int status;
  if (child < 0 || waitpid(child, &status, __WALL) < 0) return 1;
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static int runs_in_memory(char **arguments) {
  int from = open("/bin/sh", O_RDONLY), to = memfd_create("sh", 0);
  char buffer[65536];
  for (ssize_t n; (n = read(from, buffer, sizeof buffer)) > 0;)
    if (write(to, buffer, n) != n) return 1;
  fexecve(to, arguments, environ);
  return 1;
}

static int by_handle(const char *path, const char *mount_point) {
  struct { struct file_handle head; char bytes[128]; } handle = {.head.handle_bytes = 128};
  int mount_id;
  if (name_to_handle_at(AT_FDCWD, path, &handle.head, &mount_id, 0) < 0) return 1;
  return unwritten(open_by_handle_at(open(mount_point, O_RDONLY), &handle.head, O_WRONLY));
}

static int pushes_a_key(void) {
  int main_end = posix_openpt(O_RDWR | O_NOCTTY);
  if (main_end < 0 || grantpt(main_end) < 0 || unlockpt(main_end) < 0) return 1;
  setsid();
  int terminal = open(ptsname(main_end), O_RDWR);
  if (terminal < 0 || ioctl(terminal, TIOCSCTTY, 0) < 0) return 1;
  return failed(ioctl(terminal, TIOCSTI, "x"));
}

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "";
  const char *first = argc > 2 ? argv[2] : "", *second = argc > 3 ? argv[3] : "", *third = argc > 4 ? argv[4] : "";
  pid_t pid = atoi(first);
  char path[4096];
  if (is(name, "nothing")) return 0;
  if (is(name, "victim")) return victim(first, second);
  /* files */
  if (is(name, "truncate")) return failed(truncate(first, 0));
  if (is(name, "exchange")) return failed(renameat2(AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE));
  if (is(name, "reopen")) {
    snprintf(path, sizeof path, "/proc/self/fd/%d", open(first, O_PATH));
    return unwritten(open(path, O_WRONLY));
  }
  if (is(name, "link-descriptor")) {
    snprintf(path, sizeof path, "/proc/self/fd/%d", open(first, O_PATH));
    return failed(linkat(AT_FDCWD, path, AT_FDCWD, second, AT_SYMLINK_FOLLOW)) || unwritten(open(second, O_WRONLY));
  }
  if (is(name, "map")) {
    char *bytes = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, open(first, O_RDWR), 0);
    if (bytes == MAP_FAILED) return 1;
    *bytes = 'x';
    return 0;
  }
  if (is(name, "run-in-memory")) return runs_in_memory(argv + 2);
  if (is(name, "handle")) return by_handle(first, second);
  if (is(name, "bind")) return failed(mount(first, second, NULL, MS_BIND, NULL));
  if (is(name, "open-tree")) return failed(syscall(SYS_open_tree, AT_FDCWD, first, OPEN_TREE_CLONE));
  if (is(name, "chroot")) return failed(chroot(first));
  if (is(name, "read-device")) {
    char byte;
    return read(open(first, O_RDONLY), &byte, 1) != 1;
  }
  /* processes */
  if (is(name, "attach")) return failed(ptrace(PTRACE_SEIZE, pid, NULL, NULL));
  if (is(name, "read-memory") || is(name, "write-memory")) {
    char copy[sizeof secret] = "changed";
    struct iovec here = {copy, sizeof copy}, there = {(void *)strtoul(second, NULL, 16), sizeof copy};
    if (is(name, "write-memory")) return failed(process_vm_writev(pid, &here, 1, &there, 1, 0));
    return failed(process_vm_readv(pid, &here, 1, &there, 1, 0)) || strcmp(copy, secret) != 0;
  }
  if (is(name, "mem-file")) {
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    char copy[sizeof secret] = "";
    return pread(open(path, O_RDONLY), copy, sizeof copy, strtoul(second, NULL, 16)) < 0 || strcmp(copy, secret) != 0;
  }
  if (is(name, "take-descriptor")) return unwritten(syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, pid, 0), 3, 0));
  if (is(name, "pidfd-kill")) return failed(syscall(SYS_pidfd_send_signal, syscall(SYS_pidfd_open, pid, 0), SIGKILL, NULL, 0));
  if (is(name, "queue-signal")) return failed(sigqueue(pid, SIGKILL, (union sigval){0}));
  if (is(name, "compare")) return failed(syscall(SYS_kcmp, pid, getpid(), 0, 0, 0));
  if (is(name, "write-descriptor")) {
    snprintf(path, sizeof path, "/proc/%d/fd/3", pid);
    return unwritten(open(path, O_WRONLY));
  }
  if (is(name, "push-key")) return pushes_a_key();
  /* the kernel */
  if (is(name, "user-namespace")) return failed(unshare(CLONE_NEWUSER));
  if (is(name, "clone-user-namespace")) {
    long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) _exit(0);
    return reap(child);
  }
  if (is(name, "clone3-user-namespace")) {
    struct clone_args how = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    long child = syscall(SYS_clone3, &how, sizeof how);
    if (child == 0) _exit(0);
    return reap(child);
  }
  if (is(name, "set-namespace")) {
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", getpid());
    return failed(setns(open(path, O_RDONLY), 0));
  }
  if (is(name, "io-uring")) {
    char parameters[256] = {0};
    return failed(syscall(SYS_io_uring_setup, 4, parameters));
  }
  if (is(name, "key")) return failed(syscall(SYS_add_key, "user", "pith", "x", 1, KEY_SPEC_PROCESS_KEYRING));
  if (is(name, "request-key")) return failed(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 1));
  if (is(name, "perf")) {
    struct perf_event_attr what = {.type = PERF_TYPE_SOFTWARE, .size = sizeof what, .exclude_kernel = 1, .exclude_hv = 1};
    return failed(syscall(SYS_perf_event_open, &what, 0, -1, -1, 0));
  }
  if (is(name, "fault-handler")) return failed(syscall(SYS_userfaultfd, 1 /* of user mode only */));
  if (is(name, "bpf")) return failed(syscall(SYS_bpf, 0, (int[32]){2, 4, 4, 1}, 128));
  if (is(name, "fanotify")) return failed(syscall(SYS_fanotify_init, 0x200 /* by id */, O_RDONLY));
  if (is(name, "kernel-log")) return failed(syscall(SYS_syslog, 10, NULL, 0));
  if (is(name, "host-name")) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    return failed(sethostname(host, strlen(host)));
  }
#ifdef __x86_64__
  if (is(name, "io-ports")) return failed(syscall(SYS_iopl, 3));
  if (is(name, "x32-socket")) return failed(syscall(SYS_socket | X32, AF_INET, SOCK_STREAM, 0));
  if (is(name, "i386")) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20 /* getpid */) : "memory", "r8", "r9", "r10", "r11");
    return result != getpid();
  }
#endif
  /* the network */
  if (is(name, "tcp")) return reaches(AF_INET, first);
  if (is(name, "tcp6")) return reaches(AF_INET6, first);
  if (is(name, "udp")) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(pid), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return sendto(socket(AF_INET, SOCK_DGRAM, 0), "x", 1, 0, (void *)&to, sizeof to) != 1;
  }
  if (is(name, "listen")) {
    struct sockaddr_in any = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return failed(bind(fd, (void *)&any, sizeof any)) || failed(listen(fd, 1));
  }
  if (is(name, "named")) return reaches_named(first, 0);
  if (is(name, "abstract")) return reaches_named(first, 1);
  if (is(name, "pair")) return pair();
  if (is(name, "socket")) return failed(socket(atoi(first), atoi(second), atoi(third)));
  fprintf(stderr, "no such attempt: %s\n", name);
  return 2;
}
