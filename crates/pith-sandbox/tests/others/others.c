/* Reaches for what belongs to others: `others NAME ARGUMENTS...` ends with 0 if it got hold of it. As in exit codes,
 * functions here return 0 for success.
 *
 * `others outside` is the other one: a process with memory, queues, semaphores, a terminal and a socket, named after the
 * directory `$ROOT`. It writes the name of its terminal to `$ROOT/temp/terminal` when everything is there, and takes all
 * of it away when it is told to end. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#define PROGRAM 04755

struct message {
  long type;
  char text[8];
};

static int is(const char *name, const char *wanted) { return strcmp(name, wanted) == 0; }
static int failed(long result) { return result < 0; }

/* What the other one has, and what it has not. */
static key_t theirs, new;
static char name[64], new_name[64], file[96], new_file[96];

static void name_all(const char *root) {
  unsigned hash = 2166136261u;
  for (; *root; root++) hash = (hash ^ (unsigned char)*root) * 16777619u;
  theirs = (hash & 0x7ffffffe) | 2;
  new = theirs | 1;
  snprintf(name, sizeof name, "/pith-%08x", theirs);
  snprintf(new_name, sizeof new_name, "/pith-%08x-new", theirs);
  snprintf(file, sizeof file, "/dev/shm%s", name);
  snprintf(new_file, sizeof new_file, "/dev/shm%s", new_name);
}

/* The other one. */

static void take_away(int signal) {
  (void)signal;
  for (int i = 0; i < 2; i++) {
    key_t key = i ? new : theirs;
    int id;
    if ((id = shmget(key, 0, 0)) >= 0) shmctl(id, IPC_RMID, NULL);
    if ((id = semget(key, 0, 0)) >= 0) semctl(id, 0, IPC_RMID);
    if ((id = msgget(key, 0)) >= 0) msgctl(id, IPC_RMID, NULL);
    mq_unlink(i ? new_name : name);
    unlink(i ? new_file : file);
  }
  _exit(0);
}

static int named(struct sockaddr_un *address, const char *path) {
  address->sun_family = AF_UNIX;
  strncpy(address->sun_path, path, sizeof address->sun_path - 1);
  return sizeof *address;
}

static void outside(const char *root) {
  char path[512], part[600], terminal[64];
  struct sockaddr_un address = {0};
  signal(SIGTERM, take_away);
  char *memory = shmat(shmget(theirs, 4096, IPC_CREAT | 0600), NULL, 0);
  if (memory != (void *)-1) strcpy(memory, "theirs");
  semget(theirs, 1, IPC_CREAT | 0600);
  struct message message = {1, "theirs"};
  msgsnd(msgget(theirs, IPC_CREAT | 0600), &message, sizeof message.text, IPC_NOWAIT);
  struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = 8};
  mq_send(mq_open(name, O_CREAT | O_RDWR, 0600, &attributes), "theirs", 7, 1);
  int fd = open(file, O_CREAT | O_RDWR, 0600);
  if (write(fd, "theirs", 6) != 6) perror(file);
  snprintf(path, sizeof path, "%s/outside/datagrams", root);
  int datagrams = socket(AF_UNIX, SOCK_DGRAM, 0);
  if (bind(datagrams, (void *)&address, named(&address, path))) perror(path);
  int master = posix_openpt(O_RDWR | O_NOCTTY);
  grantpt(master);
  unlockpt(master);
  /* Held open, or nothing typed there would wait to be read. */
  ptsname_r(master, terminal, sizeof terminal);
  open(terminal, O_RDWR | O_NOCTTY);
  if (write(master, "typed\n", 6) != 6) perror(terminal);
  snprintf(path, sizeof path, "%s/temp/terminal", root);
  snprintf(part, sizeof part, "%s.part", path);
  FILE *out = fopen(part, "w");
  fputs(terminal, out);
  fclose(out);
  rename(part, path);
  for (;;) pause();
}

/* Unix sockets that are made as a pair, of which one sends elsewhere. */

enum sending { PLAIN, CONNECTED, DESCRIPTOR };

static int send_datagram(const char *path, int kind, enum sending sending) {
  int pair[2];
  struct sockaddr_un to = {0};
  socklen_t length = named(&to, path);
  if (failed(socketpair(AF_UNIX, kind, 0, pair))) return 1;
  if (sending == CONNECTED) return failed(connect(pair[0], (void *)&to, length)) || send(pair[0], "x", 1, 0) != 1;
  if (sending == PLAIN) return sendto(pair[0], "x", 1, 0, (void *)&to, length) != 1;
  char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 'x';
  struct iovec data = {&byte, 1};
  struct msghdr message = {&to, length, &data, 1, control, sizeof control, 0};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), pair, sizeof(int));
  return sendmsg(pair[0], &message, 0) != 1;
}

static int take_name(const char *taken) {
  int pair[2];
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path + 1, taken, sizeof address.sun_path - 2);
  return failed(socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) ||
         failed(bind(pair[0], (void *)&address, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(taken)));
}

static int processes(const char *what, int pid) {
  struct rlimit low = {64, 64};
  cpu_set_t processors;
  struct sched_param parameters = {0};
  unsigned attributes[12] = {48, SCHED_BATCH};
  sched_getaffinity(0, sizeof processors, &processors);
  if (is(what, "limit")) return failed(prlimit(pid, RLIMIT_NOFILE, &low, NULL));
  if (is(what, "priority")) return failed(setpriority(PRIO_PROCESS, pid, 1));
  if (is(what, "priority-of-group")) return failed(setpriority(PRIO_PGRP, getpgid(pid), 0));
  if (is(what, "priority-of-user")) return failed(setpriority(PRIO_USER, 0, 0));
  if (is(what, "affinity")) return failed(sched_setaffinity(pid, sizeof processors, &processors));
  if (is(what, "scheduler")) return failed(sched_setscheduler(pid, SCHED_BATCH, &parameters));
  if (is(what, "scheduler-parameters")) return failed(sched_setparam(pid, &parameters));
  if (is(what, "scheduler-attributes")) return failed(syscall(SYS_sched_setattr, pid, attributes, 0));
  if (is(what, "io-priority")) return failed(syscall(SYS_ioprio_set, 1, pid, 2 << 13 | 7));
  if (is(what, "io-priority-of-group")) return failed(syscall(SYS_ioprio_set, 2, getpgid(pid), 2 << 13 | 4));
  return 2;
}

static int objects(const char *what) {
  struct message message = {1, "x"};
  struct sembuf up = {0, 1, IPC_NOWAIT};
  char text[8] = "";
  int id;
  if (is(what, "memory-read")) {
    char *memory = shmat(shmget(theirs, 0, 0), NULL, SHM_RDONLY);
    return memory == (void *)-1 || strcmp(memory, "theirs");
  }
  if (is(what, "memory-write")) {
    char *memory = shmat(shmget(theirs, 0, 0), NULL, 0);
    return memory == (void *)-1 || (strcpy(memory, "mine"), 0);
  }
  if (is(what, "memory-remove")) return failed(id = shmget(theirs, 0, 0)) || failed(shmctl(id, IPC_RMID, NULL));
  if (is(what, "memory-make")) return failed(shmget(new, 4096, IPC_CREAT | 0600));
  if (is(what, "memory-left")) return failed(shmget(new, 0, 0));
  if (is(what, "semaphores-change")) return failed(id = semget(theirs, 0, 0)) || failed(semop(id, &up, 1));
  if (is(what, "semaphores-wait")) return failed(id = semget(theirs, 0, 0)) || failed(semtimedop(id, &up, 1, NULL));
  if (is(what, "semaphores-remove")) return failed(id = semget(theirs, 0, 0)) || failed(semctl(id, 0, IPC_RMID));
  if (is(what, "semaphores-make")) return failed(semget(new, 1, IPC_CREAT | 0600));
  if (is(what, "semaphores-left")) return failed(semget(new, 0, 0));
  if (is(what, "queue-read")) return failed(id = msgget(theirs, 0)) || failed(msgrcv(id, &message, 8, 0, IPC_NOWAIT));
  if (is(what, "queue-write")) return failed(id = msgget(theirs, 0)) || failed(msgsnd(id, &message, 8, IPC_NOWAIT));
  if (is(what, "queue-remove")) return failed(id = msgget(theirs, 0)) || failed(msgctl(id, IPC_RMID, NULL));
  if (is(what, "queue-make")) return failed(msgget(new, IPC_CREAT | 0600));
  if (is(what, "queue-left")) return failed(msgget(new, 0));
  if (is(what, "posix-queue-read")) return mq_receive(mq_open(name, O_RDONLY), text, 8, NULL) < 0;
  if (is(what, "posix-queue-write")) return failed(mq_send(mq_open(name, O_WRONLY), "x", 1, 1));
  if (is(what, "posix-queue-remove")) return failed(mq_unlink(name));
  if (is(what, "posix-queue-make")) return failed(mq_open(new_name, O_CREAT | O_RDWR, 0600, NULL));
  if (is(what, "posix-queue-left")) return failed(mq_open(new_name, O_RDONLY));
  if (is(what, "shared-file-read")) return read(open(file, O_RDONLY), text, 6) != 6;
  if (is(what, "shared-file-write")) return write(open(file, O_WRONLY), "x", 1) != 1;
  if (is(what, "shared-file-remove")) return failed(unlink(file));
  if (is(what, "shared-file-make")) return failed(open(new_file, O_CREAT | O_RDWR, 0600));
  if (is(what, "shared-file-left")) return failed(open(new_file, O_RDONLY));
  return 2;
}

static int terminals(const char *what, const char *terminal) {
  char text[8];
  int fd = open(terminal, O_RDWR | O_NOCTTY | O_NONBLOCK);
  int discipline = 0;
  struct winsize size = {1, 1, 0, 0};
  struct termios set;
  tcgetattr(fd, &set);
  set.c_lflag &= ~ECHO;
  if (is(what, "terminal-write")) return write(fd, "x", 1) != 1;
  if (is(what, "terminal-read")) return read(fd, text, 1) != 1;
  if (is(what, "terminal-silence")) return failed(tcsetattr(fd, TCSANOW, &set));
  if (is(what, "terminal-size")) return failed(ioctl(fd, TIOCSWINSZ, &size));
  if (is(what, "terminal-stop")) return failed(tcflow(fd, TCOOFF));
  if (is(what, "terminal-forget")) return failed(tcflush(fd, TCIFLUSH));
  if (is(what, "terminal-keep")) return failed(ioctl(fd, TIOCEXCL));
  if (is(what, "terminal-discipline")) return failed(ioctl(fd, TIOCSETD, &discipline));
  return 2;
}

/* Leaves a program that runs as whoever owns it. */
static int leave(const char *how) {
  struct open_how asked = {.flags = O_CREAT | O_WRONLY, .mode = PROGRAM};
  char path[64];
  if (is(how, "mode-open")) return failed(open("left", O_CREAT | O_WRONLY, PROGRAM));
  if (is(how, "mode-openat2")) return failed(syscall(SYS_openat2, AT_FDCWD, "left", &asked, sizeof asked));
  if (is(how, "mode-creat")) return failed(creat("left", PROGRAM));
  if (is(how, "mode-mknod")) return failed(mknod("left", S_IFREG | PROGRAM, 0));
  if (is(how, "mode-unnamed")) {
    int fd = open(".", O_TMPFILE | O_WRONLY, PROGRAM);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return failed(linkat(AT_FDCWD, path, AT_FDCWD, "left", AT_SYMLINK_FOLLOW));
  }
  int fd = open("left", O_CREAT | O_WRONLY, 0755);
  if (is(how, "mode-fchmod")) return failed(fchmod(fd, PROGRAM));
  if (is(how, "mode-chmod")) return failed(chmod("left", PROGRAM));
  if (is(how, "mode-fchmodat")) return failed(syscall(SYS_fchmodat, AT_FDCWD, "left", PROGRAM));
  if (is(how, "mode-fchmodat2")) return failed(syscall(452, AT_FDCWD, "left", PROGRAM, 0));
  return 2;
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "", *first = argc > 2 ? argv[2] : "";
  const char *root = getenv("ROOT");
  if (!root) return 2;
  name_all(root);
  if (is(what, "outside")) outside(root);
  if (is(what, "datagram")) return send_datagram(first, SOCK_DGRAM, PLAIN);
  if (is(what, "datagram-of-raw")) return send_datagram(first, SOCK_RAW, PLAIN);
  if (is(what, "datagram-connected")) return send_datagram(first, SOCK_DGRAM, CONNECTED);
  if (is(what, "datagram-with-descriptor")) return send_datagram(first, SOCK_DGRAM, DESCRIPTOR);
  if (is(what, "take-name")) return take_name(name);
  if (is(what, "lease")) return failed(fcntl(open(first, O_RDONLY), F_SETLEASE, F_RDLCK));
  if (is(what, "lock")) return failed(flock(open(first, O_RDONLY), LOCK_EX | LOCK_NB));
  if (is(what, "lock-range")) {
    struct flock range = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    return failed(fcntl(open(first, O_RDONLY), F_OFD_SETLK, &range));
  }
  int result = 2;
  if (result == 2) result = processes(what, atoi(first));
  if (result == 2) result = objects(what);
  if (result == 2 && strncmp(what, "terminal", 8) == 0) result = terminals(what, first);
  if (result == 2 && strncmp(what, "mode", 4) == 0) result = leave(what);
  if (result == 2) fprintf(stderr, "no such attempt: %s\n", what);
  return result;
}
