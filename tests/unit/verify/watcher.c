/*
 * The watcher thread: what it is, that it handles results alone, sleeps when there is nothing, calls no driver, and
 * bothers neither fork nor exit.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/verdict/verify_internal.h"
#include "tests/unit/verify/fake.h"

#define STREAM FAKE_STREAM(1)

static _Atomic unsigned findings;
static _Atomic bool on_main;
static pthread_t main_thread;
static uint8_t memory[8192];

#define REQUIRE(condition)                                                                                             \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static void finding(const struct verify_finding *found)
{
	(void)found;
	if (pthread_equal(pthread_self(), main_thread))
		on_main = true;
	findings++;
}

static void milliseconds(long ms)
{
	struct timespec time = {ms / 1000, ms % 1000 * 1000000};
	nanosleep(&time, NULL);
}

/*
 * A line of /proc/self/task/TID/status of the thread of that name, after the colon; false when there is no such thread.
 */
static bool thread_status(const char *name, const char *field, char *ret, size_t bytes)
{
	bool found = false;
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;
	while (!found && (entry = readdir(folder))) {
		char path[300], line[256];
		bool right = false;
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
		while (file && fgets(line, sizeof(line), file)) {
			line[strcspn(line, "\n")] = 0;
			if (strncmp(line, "Name:\t", 6) == 0)
				right = strcmp(line + 6, name) == 0;
			if (right && strncmp(line, field, strlen(field)) == 0 && line[strlen(field)] == ':') {
				snprintf(ret, bytes, "%s", line + strlen(field) + 2);
				found = true;
			}
		}
		if (file)
			fclose(file);
	}
	closedir(folder);
	return found;
}

static bool wait_for_findings(unsigned count)
{
	for (int i = 0; i < 2000 && findings < count; i++)
		milliseconds(1);
	return findings == count;
}

/* On a busy machine it lingers longer before it sleeps. */
static bool falls_asleep(void)
{
	char before[256], after[256];
	for (int looks = 0; looks < 50; looks++) {
		if (!thread_status("cuconst-watch", "voluntary_ctxt_switches", before, sizeof(before)))
			return false;
		milliseconds(200);
		if (!thread_status("cuconst-watch", "voluntary_ctxt_switches", after, sizeof(after)))
			return false;
		if (strcmp(before, after) == 0)
			return true;
	}
	return false;
}

int main(void)
{
	char text[256];
	main_thread = pthread_self();
	fake_start(finding);
	fake_check_lock(false);
	REQUIRE(!thread_status("cuconst-watch", "Name", text, sizeof(text)));
	void *attachment = NULL;
	uint64_t start = (uint64_t)(uintptr_t)memory;
	REQUIRE(verify_attach(start, start + sizeof(memory), false, NULL, &attachment) == CUDA_SUCCESS);
	struct range *range = fake_range(start, start + sizeof(memory), attachment);
	milliseconds(20);

	REQUIRE(thread_status("cuconst-watch", "SigBlk", text, sizeof(text)));
	/* All but the two that nobody can block, and the two that libc keeps to itself. */
	REQUIRE((strtoull(text, NULL, 16) | 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1) | 3ull << 31) == ~0ull);

	struct verify_writer writer = {.api = "a"};
	for (unsigned i = 1; i <= 3; i++) {
		fake_write(STREAM, start, (uint8_t)i, 1);
		REQUIRE(verify_after(&writer, &range, 1, STREAM) == 1);
		REQUIRE(wait_for_findings(i));
		/* The next one finds it asleep, still lingering, and asleep. */
		milliseconds(i == 1 ? 0 : 300);
	}
	REQUIRE(!on_main);

	/* Nothing in flight: soon it does not run at all. */
	unsigned calls = fake_counts().calls;
	REQUIRE(falls_asleep());

	/* A long kernel: it looks, without a driver call, and takes the result when it comes. */
	fake_defer(true);
	fake_write(STREAM, start, 77, 1);
	verify_after(&writer, &range, 1, STREAM);
	unsigned issued = fake_counts().calls;
	REQUIRE(issued > calls);
	milliseconds(50);
	REQUIRE(findings == 3);
	fake_run_all();
	REQUIRE(wait_for_findings(4));
	REQUIRE(fake_counts().calls == issued);

	/*
	 * A child has none, and gets none. A watcher that was in a sanitizer's allocator would leave it locked in the child,
	 * which allocates.
	 */
	REQUIRE(falls_asleep());
	pid_t child = fork();
	if (child == 0) {
		verify_postfork_child();
		if (thread_status("cuconst-watch", "Name", text, sizeof(text)))
			_exit(2);
		fake_defer(false);
		if (verify_attach(start, start + 64, false, NULL, &attachment) != CUDA_SUCCESS)
			_exit(3);
		_exit(thread_status("cuconst-watch", "Name", text, sizeof(text)) ? 4 : 0);
	}
	int status;
	REQUIRE(waitpid(child, &status, 0) == child);
	REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);

	/* The process ends with a check in flight that never comes back: by return, while the watcher looks. */
	verify_after(&writer, &range, 1, STREAM);
	REQUIRE(verify_counts().pending == 1);
	return 0;
}
