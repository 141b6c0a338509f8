/*
 * Stands in for a guest's kernel that was taken over: each argument NAME=VALUE is one attack, made by a system call of
 * the host. One line for each: its name, and 0 or the number of the error. Static, as the sandbox has no libraries.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

static int failed(long result) { return result < 0 ? errno : 0; }

static int write_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_NONBLOCK | O_APPEND);

	return fd < 0 ? errno : failed(write(fd, "x", 1));
}

static int read_file(const char *path) { return failed(open(path, O_RDONLY | O_NONBLOCK)); }

static int kill_process(const char *pid) { return failed(kill(atoi(pid), SIGKILL)); }

static int trace(const char *pid) { return failed(ptrace(PTRACE_ATTACH, atoi(pid), 0, 0)); }

static int write_memory(const char *text)
{
	char byte = 'x';
	unsigned long address;
	int pid;
	struct iovec here = { &byte, 1 }, there = { 0, 1 };

	sscanf(text, "%d:%lx", &pid, &address);
	there.iov_base = (void *)address;
	return failed(process_vm_writev(pid, &here, 1, &there, 1, 0));
}

static int connect_unix(const char *name, int is_abstract)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (fd < 0)
		return errno;
	strncpy(to.sun_path + is_abstract, name, sizeof(to.sun_path) - 2);
	return failed(connect(fd, (void *)&to, offsetof(struct sockaddr_un, sun_path) + is_abstract + strlen(name)));
}

static int send_datagram(const char *name, int is_abstract)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct iovec part = { "x", 1 };
	struct msghdr message = { .msg_name = &to, .msg_iov = &part, .msg_iovlen = 1 };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0)
		return errno;
	strncpy(to.sun_path + is_abstract, name, sizeof(to.sun_path) - 2);
	message.msg_namelen = offsetof(struct sockaddr_un, sun_path) + is_abstract + strlen(name);
	return failed(sendmsg(pair[0], &message, 0));
}

static int send_to_path(const char *path) { return send_datagram(path, 0); }

static int send_to_abstract(const char *name) { return send_datagram(name, 1); }

static int change_file(const char *path, int command, long argument)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK);

	return fd < 0 ? errno : failed(fcntl(fd, command, argument));
}

static int lease(const char *path) { return change_file(path, F_SETLEASE, F_RDLCK); }

static int watch_folder(const char *path) { return change_file(path, F_NOTIFY, DN_CREATE); }

static int choose_signal(const char *path) { return change_file(path, F_SETSIG, SIGKILL); }

static int lock_range(const char *path)
{
	struct flock whole = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

	return change_file(path, F_SETLK, (long)&whole);
}

static int lock_description(const char *path)
{
	struct flock whole = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

	return change_file(path, F_OFD_SETLK, (long)&whole);
}

static int lock_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK);

	return fd < 0 ? errno : failed(flock(fd, LOCK_EX | LOCK_NB));
}

static int silence_terminal(const char *unused)
{
	struct termios now;

	if (tcgetattr(1, &now) < 0)
		return errno;
	now.c_lflag &= ~ECHO;
	return failed(tcsetattr(1, TCSANOW, &now)) + 0 * !unused;
}

static int make_device(const char *path) { return failed(mknod(path, S_IFCHR | 0600, makedev(1, 3))); }

static int keep_mode(const char *path)
{
	struct stat now;

	return stat(path, &now) < 0 ? errno : failed(chmod(path, now.st_mode & 0777));
}

static int hide_console(const char *unused) { return failed(fchmod(1, 0)) + 0 * !unused; }

static int leave_whiteout(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	return fd < 0 ? errno : failed(syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, "moved", RENAME_WHITEOUT));
}

static int wait_for_signal(const char *unused) { return failed(pause()) + 0 * !unused; }

static int allow_core(const char *bytes)
{
	struct rlimit now, wanted = { atoll(bytes), atoll(bytes) };

	if (getrlimit(RLIMIT_CORE, &now) < 0)
		return errno;
	return now.rlim_cur == wanted.rlim_cur ? 0 : failed(setrlimit(RLIMIT_CORE, &wanted));
}

static int fill(int fd, long long bytes)
{
	static char block[1 << 16];

	for (; bytes > 0; bytes -= sizeof(block))
		if (write(fd, block, sizeof(block)) < 0)
			return errno;
	return 0;
}

static int write_deleted(const char *bytes)
{
	int error = 0;

	for (int i = 0; i < 16 && !error; i++) { /* several files, each shorter than the longest that is allowed */
		int fd = open("deleted", O_WRONLY | O_CREAT, 0600);

		if (fd < 0 || unlink("deleted") < 0)
			return errno;
		error = fill(fd, atoll(bytes) / 16);
	}
	return error;
}

static int write_hidden(const char *bytes)
{
	int error = 0;

	if (mkdir("hidden", 0300) < 0)
		return errno;
	for (int i = 0; i < 16 && !error; i++) {
		char name[32];
		int fd;

		snprintf(name, sizeof(name), "hidden/%d", i);
		fd = open(name, O_WRONLY | O_CREAT, 0600);
		error = fd < 0 ? errno : fill(fd, atoll(bytes) / 16);
	}
	return error;
}

static int make_files(const char *count)
{
	for (int i = 0; i < atoi(count); i++) {
		char name[32];
		int fd;

		snprintf(name, sizeof(name), "f%d", i);
		fd = open(name, O_WRONLY | O_CREAT, 0600);
		if (fd < 0)
			return errno;
		close(fd);
	}
	return 0;
}

static int signal_group(const char *number) { return failed(kill(0, atoi(number))); }

static int signal_everyone(const char *number)
{
	int error = failed(kill(-1, atoi(number)));

	return error == ESRCH ? 0 : error; /* nobody but itself */
}

/* Each word is NUMBER or NUMBER:POSITION:VALUE, a call with all arguments 0 but one. Name those that are not refused. */
static int make_calls(const char *words)
{
	char *list = strdup(words);

	for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) {
		long arguments[6] = { 0 }, number, position = 0, value = 0;

		sscanf(word, "%ld:%ld:%ld", &number, &position, &value);
		arguments[position] = value;
		if (syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]) >= 0 ||
		    errno != EPERM)
			printf("allowed:%s ", word);
	}
	return 0;
}

static int connect_path(const char *path) { return connect_unix(path, 0); }

static int connect_abstract(const char *name) { return connect_unix(name, 1); }

static int connect_tcp(const char *port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return fd < 0 ? errno : failed(connect(fd, (void *)&to, sizeof(to)));
}

static int make_mount(const char *path) { return failed(mount("none", path, "tmpfs", 0, "")); }

static int execute_memory(const char *program)
{
	char *empty[] = { "", NULL };
	char buffer[65536];
	int memory = memfd_create("x", MFD_CLOEXEC), from = open(program, O_RDONLY), status;
	ssize_t length;
	pid_t child;

	if (memory < 0 || from < 0)
		return errno;
	while ((length = read(from, buffer, sizeof(buffer))) > 0)
		if (write(memory, buffer, length) != length)
			return errno;
	child = fork();
	if (child < 0)
		return errno;
	if (child == 0) {
		syscall(SYS_execveat, memory, "", empty, empty, AT_EMPTY_PATH);
		_exit(errno);
	}
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

static int make_namespace(const char *unused)
{
	long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

	if (child == 0)
		_exit(0);
	return failed(child) + 0 * !unused;
}

static int leave_child(const char *unused)
{
	long child = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);

	if (child == 0)
		_exit(0);
	return failed(child) + 0 * !unused;
}

static int make_namespace_by_clone3(const char *unused)
{
	unsigned long arguments[8] = { CLONE_NEWUSER, 0, 0, 0, SIGCHLD };
	long child = syscall(SYS_clone3, arguments, sizeof(arguments));

	if (child == 0)
		_exit(0);
	return failed(child) + 0 * !unused;
}

static int execute(const char *path, int by_execveat)
{
	char *empty[] = { "", NULL };
	pid_t child = fork();
	int status;

	if (child < 0)
		return errno;
	if (child == 0) {
		if (by_execveat)
			syscall(SYS_execveat, AT_FDCWD, path, empty, empty, 0);
		else
			execve(path, empty, empty);
		_exit(errno);
	}
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

static int execute_file(const char *path) { return execute(path, 0); }

static int execute_by_execveat(const char *path) { return execute(path, 1); }

static int set_user_id(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0755);

	return fd < 0 ? errno : failed(fchmod(fd, 04755));
}

static int share_memory(const char *key) { return failed(shmget(strtol(key, NULL, 0), 1, 0)); }

static int write_much(const char *bytes)
{
	int fd = open("much", O_WRONLY | O_CREAT, 0600);

	signal(SIGXFSZ, SIG_IGN);
	return fd < 0 ? errno : failed(pwrite(fd, "x", 1, atoll(bytes)));
}

static int gain_privileges(const char *unused)
{
	int given_up = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);

	return given_up == 0 ? 0 : EPERM + 0 * !unused;
}

static int use_capability(const char *unused)
{
	return prctl(PR_CAPBSET_READ, 21 /* CAP_SYS_ADMIN */, 0, 0, 0) == 1 ? 0 : EPERM + 0 * !unused;
}

static int start_processes(const char *count)
{
	int wanted = atoi(count), error = 0;
	pid_t *children = calloc((size_t)wanted, sizeof(*children));

	for (int i = 0; i < wanted && !error; i++) {
		children[i] = fork();
		if (children[i] == 0)
			for (;;)
				pause();
		if (children[i] < 0)
			error = errno;
	}
	for (int i = 0; i < wanted; i++)
		if (children[i] > 0)
			kill(children[i], SIGKILL);
	return error;
}

static const struct {
	const char *name;
	int (*make)(const char *);
} attacks[] = {
	{ "write", write_file }, { "read", read_file }, { "kill", kill_process }, { "trace", trace },
	{ "memory", write_memory }, { "unix", connect_path }, { "abstract", connect_abstract },
	{ "tcp", connect_tcp }, { "mount", make_mount }, { "memfd", execute_memory },
	{ "namespace", make_namespace }, { "setuid", set_user_id }, { "shm", share_memory },
	{ "much", write_much }, { "privileges", gain_privileges }, { "capability", use_capability },
	{ "processes", start_processes }, { "clone3", make_namespace_by_clone3 }, { "execute", execute_file },
	{ "execveat", execute_by_execveat }, { "datagram", send_to_path }, { "abstract-datagram", send_to_abstract },
	{ "lease", lease }, { "notify", watch_folder }, { "signal", choose_signal }, { "range", lock_range },
	{ "description", lock_description }, { "flock", lock_file }, { "terminal", silence_terminal },
	{ "device", make_device }, { "deleted", write_deleted }, { "hidden", write_hidden }, { "files", make_files },
	{ "group", signal_group }, { "everyone", signal_everyone }, { "calls", make_calls },
	{ "mode", keep_mode }, { "whiteout", leave_whiteout }, { "core", allow_core },
	{ "wait", wait_for_signal }, { "sibling", leave_child },
	{ "console", hide_console },
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	for (int i = 1; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (!value)
			continue;
		*value++ = 0;
		for (size_t n = 0; n < sizeof(attacks) / sizeof(*attacks); n++)
			if (!strcmp(attacks[n].name, argv[i]))
				printf("%s %d\n", argv[i], attacks[n].make(value));
	}
	return 0;
}
