/* What a program may expect of its memory and of its floating-point registers, one line for each expectation. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE 4096UL

static sigjmp_buf back;
static volatile struct {
	int signal, code;
	unsigned long address, trap, wrote;
} met;

static void meet(int signal, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	met.signal = signal;
	met.code = info->si_code;
	met.address = (unsigned long)info->si_addr;
	met.trap = regs[REG_TRAPNO];
	met.wrote = !!(regs[REG_ERR] & 2);
	siglongjmp(back, 1);
}

static char *pages(size_t number, int protection)
{
	char *memory = mmap(NULL, number * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		perror("mmap"), exit(1);
	return memory;
}

/* Read or write at an address, and print what signal comes. The address is printed as the distance to `from`. */
static void try(const char *what, volatile char *at, char *from, int write)
{
	met.signal = 0;
	if (!sigsetjmp(back, 1)) {
		if (write)
			*at = 1;
		else
			(void)*at;
	}
	if (met.signal)
		printf("%s: signal %d, code %d, at %ld, trap %lu, wrote %lu\n", what, met.signal, met.code,
		       (long)(met.address - (unsigned long)from), met.trap, met.wrote);
	else
		printf("%s: done\n", what);
}

static void refused_accesses(void)
{
	char *memory = pages(64, PROT_READ | PROT_WRITE), *mapped;
	int file = memfd_create("page", 0);

	memset(memory, 7, 32 * PAGE);
	mprotect(memory + 8 * PAGE, PAGE, PROT_READ);
	mprotect(memory + 9 * PAGE, PAGE, PROT_NONE);
	mprotect(memory + 40 * PAGE, PAGE, PROT_READ);
	mprotect(memory + 41 * PAGE, PAGE, PROT_NONE);
	try("write of a page to read", memory + 8 * PAGE + 5, memory, 1);
	try("the same again", memory + 8 * PAGE + 5, memory, 1);
	try("read of a page to read", memory + 8 * PAGE + 5, memory, 0);
	try("read of a page without access", memory + 9 * PAGE, memory, 0);
	try("write of a page without access", memory + 9 * PAGE, memory, 1);
	try("write of an unused page to read", memory + 40 * PAGE, memory, 1);
	try("read of an unused page without access", memory + 41 * PAGE, memory, 0);
	mprotect(memory + 9 * PAGE, PAGE, PROT_READ | PROT_WRITE);
	try("write after access came", memory + 9 * PAGE, memory, 1);
	munmap(memory + 10 * PAGE, PAGE);
	try("read of nothing", memory + 10 * PAGE, memory, 0);
	try("write of nothing", memory + 10 * PAGE, memory, 1);
	try("read of address zero", NULL, NULL, 0);
	if (ftruncate(file, PAGE))
		perror("ftruncate");
	mapped = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	try("write of a file", mapped, mapped, 1);
	try("write beyond a file", mapped + PAGE, mapped, 1);
	try("read beyond a file", mapped + 2 * PAGE, mapped, 0);
}

static unsigned long sum(const unsigned char *memory, size_t bytes)
{
	unsigned long total = 0;

	for (size_t i = 0; i < bytes; i++)
		total += memory[i];
	return total;
}

/* Pages have what was written to them and else zeros, also after a fork, in any order of accesses. */
static void contents(void)
{
	unsigned char *memory = (unsigned char *)pages(600, PROT_READ | PROT_WRITE);
	unsigned state = 1;
	int status;

	for (int i = 0; i < 400; i++) {
		state = state * 1103515245u + 12345u;
		memory[(state >> 8) % (600 * PAGE)] += i & 1;
	}
	printf("scattered: %lu\n", sum(memory, 600 * PAGE));
	for (int i = 0; i < 600; i++)
		memory[i * PAGE] = i;
	printf("one after the other: %lu\n", sum(memory, 600 * PAGE));
	fflush(stdout);
	if (!fork()) {
		for (int i = 0; i < 300; i++)
			memory[2 * i * PAGE + 1] = 3;
		printf("child: %lu\n", sum(memory, 600 * PAGE));
		fflush(stdout);
		_exit(0);
	}
	for (int i = 0; i < 600; i++)
		memory[i * PAGE + 2] = 1;
	wait(&status);
	printf("parent: %lu\n", sum(memory, 600 * PAGE));
	madvise(memory, 300 * PAGE, MADV_DONTNEED);
	printf("half forgotten: %lu\n", sum(memory, 600 * PAGE));
}

/* Reading needs no memory of its own. */
static void reads_without_memory(size_t megabytes)
{
	size_t number = megabytes << 8;
	char *memory = pages(number, PROT_READ | PROT_WRITE);
	unsigned long total = 0;

	memory[0] = 1;
	for (size_t i = 0; i < number; i++)
		total += memory[i * PAGE];
	printf("read: %lu\n", total);
}

static void *calculate(void *step)
{
	double x = 0, y = *(double *)step;
	char *memory = pages(256, PROT_READ | PROT_WRITE);

	for (int i = 0; i < 20000; i++) {
		x = x * 0.999 + y;
		y += 1e-3;
		if (i % 100 == 0) {
			memory[(i / 100) * PAGE] = 1;
			sched_yield();
		}
	}
	*(double *)step = x;
	return NULL;
}

static volatile double disturbed;

static void disturb(int signal)
{
	disturbed = disturbed * 1.5 + signal;
}

/* Threads, signals and faults leave the registers of others alone. */
static void registers(void)
{
	double steps[4] = {1, 2, 3, 4};
	pthread_t threads[4];
	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};

	signal(SIGALRM, disturb);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, calculate, &steps[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	setitimer(ITIMER_REAL, &never, NULL);
	printf("calculated: %.9f %.9f %.9f %.9f\n", steps[0], steps[1], steps[2], steps[3]);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_sigaction = meet, .sa_flags = SA_SIGINFO | SA_NODEFER};

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	refused_accesses();
	contents();
	registers();
	reads_without_memory(argc > 1 ? strtoul(argv[1], NULL, 10) : 1);
	return 0;
}
