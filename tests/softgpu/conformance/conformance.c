/*
 * Asks a CUDA driver several hundred questions; conformance.h says what an answer is. Plain driver API, so that it runs
 * on a real GPU as on the software one:
 *
 *     cc -I. -Wno-deprecated-declarations -o conformance tests/softgpu/conformance/[a-z]*.c -l:libcuda.so.1 -ldl -lpthread
 *     ./conformance [FAMILY...] > h200.tsv
 *
 * Every family has a process of its own, and so has every topic that may end its context. Where a topic takes its
 * process with it, that is an answer too, and the family goes on with the next topic.
 */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/softgpu/conformance/conformance.h"

enum { PROCESS_SECONDS = 20 };

static const struct family *const families[] = {
	&init_family,      &device_family, &primary_family,    &context_family, &memory_family,  &copy_family,
	&set_family,       &vmm_family,    &pool_family,       &pointer_family, &stream_family,  &event_family,
	&capture_family,   &graph_family,  &graph_edit_family, &module_family,  &library_family, &launch_family,
	&occupancy_family, &memop_family,  &array_family,      &ipc_family,     &resolve_family, &sticky_family,
};

static const char *family_name;

void answer(const char *question, const char *format, ...)
{
	char line[512];
	int used = snprintf(line, sizeof(line), "%s.%s\t", family_name, question);
	va_list arguments;

	va_start(arguments, format);
	used += vsnprintf(line + used, sizeof(line) - (size_t)used - 1, format, arguments);
	va_end(arguments);
	if ((size_t)used > sizeof(line) - 2)
		used = sizeof(line) - 2;
	line[used] = '\n';
	/* At once: whatever the next question does to this process, this answer is out. */
	for (int done = 0; done <= used;) {
		ssize_t written = write(STDOUT_FILENO, line + done, (size_t)(used + 1 - done));
		if (written < 0 && errno != EINTR)
			_exit(2);
		done += written > 0 ? (int)written : 0;
	}
}

static const char *status_name(CUresult status)
{
	const char *name = NULL;

	return cuGetErrorName(status, &name) == CUDA_SUCCESS && name != NULL ? name : "a status without a name";
}

void answer_status(const char *question, CUresult status)
{
	answer(question, "%s", status_name(status));
}

void answer_yes(const char *question, bool yes)
{
	answer(question, "%s", yes ? "yes" : "no");
}

void answer_number(const char *question, long long number)
{
	answer(question, "%lld", number);
}

static const char *topic_name;

void need_status(CUresult status, const char *what)
{
	if (status == CUDA_SUCCESS)
		return;
	answer(topic_name, "not asked: %s: %s", what, status_name(status));
	_exit(0);
}

/* The topics [first, end) of a family, in this process. `ret_reached` is shared with the parent. */
static void run_topics(const struct family *family, int first, int end, volatile int *ret_reached)
{
	alarm(PROCESS_SECONDS);
	topic_name = family->topics[first].name;
	if (!family->bare)
		enter();
	for (int i = first; i < end; i++) {
		*ret_reached = i;
		topic_name = family->topics[i].name;
		family->topics[i].ask();
	}
	*ret_reached = end;
	/* Without the driver's own farewell: it is not asked about, and may not survive what was. */
	_exit(0);
}

static void run_family(const struct family *family, volatile int *reached)
{
	const struct topic *topics = family->topics;

	family_name = family->name;
	for (int first = 0, end; topics[first].name != NULL; first = *reached) {
		bool alone = family->bare || topics[first].alone;
		for (end = first + 1; !alone && topics[end].name != NULL && !topics[end].alone;)
			end++;
		*reached = first;
		pid_t child = fork();
		if (child == 0)
			run_topics(family, first, end, reached);
		int status = 0;
		if (child < 0 || waitpid(child, &status, 0) != child) {
			perror("conformance");
			exit(2);
		}
		if (WIFSIGNALED(status))
			answer(topics[*reached].name, "ended its process: %s", strsignal(WTERMSIG(status)));
		if (*reached < end)
			(*reached)++;
	}
}

static bool wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc < 2;
}

int main(int argc, char **argv)
{
	volatile int *reached = mmap(NULL, sizeof(*reached), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (reached == MAP_FAILED) {
		perror("conformance");
		return 2;
	}
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
		if (wanted(families[i]->name, argc, argv))
			run_family(families[i], reached);
	return 0;
}
