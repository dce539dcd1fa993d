/*
 * Readers against writers, as a plain program that also runs under the thread sanitizer. One argument: which scene.
 * Exit status 0, or a line on stderr that says what was wrong.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "registry/registry.h"

#define WRITERS 2
#define READERS 2
/* What each writer does; readers go on until the writers are through. */
#define WRITES 60000
#define MANY_READS 4096

static struct registry *reg;
static pthread_barrier_t start_line;
static _Atomic unsigned writing = WRITERS;

__attribute__((format(printf, 1, 2))) static void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	_exit(1);
}

#define expect(condition)                                                                                              \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			fail("%s:%d: %s", __FILE__, __LINE__, #condition);                                             \
	} while (0)

static uint64_t draw(uint64_t *state, uint64_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (*state >> 3) % below;
}

static registry_handle add(uint64_t start, uint64_t end, void *attachment)
{
	const struct registry_spec spec = {.start = start, .end = end, .label = "thread", .attachment = attachment};
	registry_handle handle = 0;

	expect(registry_insert(reg, &spec, &handle, NULL) == 0);
	return handle;
}

/* Runs WRITERS and READERS threads to the end; each gets its number. */
static void race(void *(*writer)(void *), void *(*reader)(void *))
{
	pthread_t threads[WRITERS + READERS];

	expect(pthread_barrier_init(&start_line, NULL, WRITERS + READERS) == 0);
	for (uintptr_t number = 0; number < WRITERS + READERS; number++)
		expect(pthread_create(&threads[number], NULL, number < WRITERS ? writer : reader, (void *)number) == 0);
	for (unsigned number = 0; number < WRITERS + READERS; number++)
		expect(pthread_join(threads[number], NULL) == 0);
	pthread_barrier_destroy(&start_line);
}

/*
 * Scene "snapshot". Pillars stand all the time, and around each a writer moves a curtain: it hangs the new one
 * before it takes the old one down. So at every instant a stab at a pillar finds it, and one or two curtains;
 * anything else was never so.
 */
#define PILLARS 512
#define PILLAR_STRIDE 1000
#define PILLAR_AT(nth) (UINT64_C(1000000) + (nth)*PILLAR_STRIDE)

static void *move_curtains(void *number)
{
	uint64_t state = (uintptr_t)number * 977 + 1;
	registry_handle curtain[PILLARS / WRITERS];
	unsigned own = PILLARS / WRITERS, first = (unsigned)(uintptr_t)number * own;

	for (unsigned nth = 0; nth < own; nth++)
		curtain[nth] = add(PILLAR_AT(first + nth) - 100, PILLAR_AT(first + nth) + 100, NULL);
	pthread_barrier_wait(&start_line);
	for (unsigned write = 0; write < WRITES; write++) {
		unsigned nth = (unsigned)draw(&state, own);
		uint64_t pillar = PILLAR_AT(first + nth);
		registry_handle next = add(pillar - 1 - draw(&state, 300), pillar + 2 + draw(&state, 300), NULL);

		expect(registry_remove(reg, curtain[nth], NULL) == 0);
		expect(registry_remove(reg, curtain[nth], NULL) == -ESTALE);
		curtain[nth] = next;
	}
	atomic_fetch_sub(&writing, 1);
	return NULL;
}

static void look_at_one(uint64_t pillar)
{
	struct range *out[4];
	size_t many = registry_overlaps(reg, pillar, pillar + 1, out, 4);
	bool seen = false;

	expect(many == 2 || many == 3);
	for (size_t at = 0; at < many; at++) {
		expect(out[at]->start <= pillar && out[at]->end > pillar);
		expect(strcmp(out[at]->label, "thread") == 0);
		expect(at == 0 || out[at]->start > out[at - 1]->start ||
		       (out[at]->start == out[at - 1]->start && out[at]->handle > out[at - 1]->handle));
		seen |= out[at]->start == pillar && out[at]->end == pillar + 1;
	}
	for (size_t at = 0; at < many; at++)
		range_put(out[at]);
	expect(seen);
	expect(registry_hits(reg, pillar, pillar + 1));
}

/* All at once: a walk over many nodes is of one instant as well. A writer has two curtains for at most one pillar. */
static void look_at_all(void)
{
	size_t many = registry_overlaps(reg, PILLAR_AT(0), PILLAR_AT(PILLARS), NULL, 0);

	expect(many >= 2 * PILLARS && many <= 2 * PILLARS + WRITERS);
}

static void look_beside(uint64_t pillar)
{
	uint64_t distance = 77;
	struct range *range = registry_nearest(reg, pillar, &distance);

	expect(range && distance == 0 && range->start <= pillar && range->end > pillar);
	range_put(range);
	/* No curtain reaches half way to the next pillar. */
	expect(!registry_hits(reg, pillar + 400, pillar + 500));
	range = registry_nearest(reg, pillar + 450, &distance);
	expect(range && distance >= 148 && distance <= 449);
	range_put(range);
}

static void *look(void *number)
{
	uint64_t state = (uintptr_t)number * 977 + 1;

	pthread_barrier_wait(&start_line);
	for (unsigned read = 0; read < MANY_READS || atomic_load(&writing) > 0; read++) {
		uint64_t pillar = PILLAR_AT(draw(&state, PILLARS));

		if (read % 64 == 0)
			look_at_all();
		if (read % 4 == 0)
			look_beside(pillar);
		look_at_one(pillar);
	}
	return NULL;
}

static void scene_snapshot(void)
{
	for (unsigned nth = 0; nth < PILLARS; nth++)
		add(PILLAR_AT(nth), PILLAR_AT(nth) + 1, NULL);
	race(move_curtains, look);
	expect(atomic_load(&reg->live) == 2 * PILLARS);
}

/*
 * Scene "references". Attachments are memory that the release hook frees: if a reader could see one after that, or
 * if one were released twice, a sanitizer or the count would tell.
 */
#define PUBLISHED 64

struct attachment {
	uint64_t start;
	_Atomic unsigned users;
};

static _Atomic registry_handle published[PUBLISHED];
static _Atomic uint64_t made, freed;

static void free_attachment(void *attachment)
{
	((struct attachment *)attachment)->start = 0;
	free(attachment);
	atomic_fetch_add(&freed, 1);
}

static void *publish(void *number)
{
	uint64_t state = (uintptr_t)number * 977 + 1;

	pthread_barrier_wait(&start_line);
	for (unsigned write = 0; write < WRITES; write++) {
		struct attachment *attachment = malloc(sizeof *attachment);
		registry_handle old;

		expect(attachment);
		attachment->start = draw(&state, PUBLISHED) * 16 + 16;
		atomic_init(&attachment->users, 0);
		atomic_fetch_add(&made, 1);
		old = atomic_exchange(&published[attachment->start / 16 - 1],
		                      add(attachment->start, attachment->start + 16, attachment));
		if (old)
			expect(registry_remove(reg, old, NULL) == 0);
	}
	atomic_fetch_sub(&writing, 1);
	return NULL;
}

static void use(struct range *range)
{
	struct attachment *attachment = range->attachment;

	expect(attachment->start == range->start);
	atomic_fetch_add_explicit(&attachment->users, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&range->checks, 1, memory_order_relaxed);
	range_put(range_get(range));
	range_put(range);
}

static void *take(void *number)
{
	uint64_t state = (uintptr_t)number * 977 + 1;

	pthread_barrier_wait(&start_line);
	for (unsigned read = 0; read < MANY_READS || atomic_load(&writing) > 0; read++) {
		uint64_t which = draw(&state, PUBLISHED);
		struct range *range = registry_find(reg, atomic_load(&published[which]));
		struct range *out[8];
		size_t many = registry_stab(reg, which * 16 + 20, out, 8);

		if (range) {
			expect(range->start == which * 16 + 16);
			use(range);
		}
		for (size_t at = 0; at < many && at < 8; at++)
			use(out[at]);
	}
	return NULL;
}

static void scene_references(void)
{
	race(publish, take);
	registry_destroy(&reg);
	expect(atomic_load(&made) == WRITERS * WRITES);
	expect(atomic_load(&freed) == atomic_load(&made));
}

/* Scene "handles". Two threads end the same protections: of each, exactly one succeeds. */
#define SHARED 20000

static registry_handle shared[SHARED];
static _Atomic unsigned ended;

static void *end_all(void *number)
{
	pthread_barrier_wait(&start_line);
	for (unsigned nth = 0; nth < SHARED; nth++) {
		int error = registry_remove(reg, shared[nth], NULL);

		expect(error == 0 || error == -ESTALE);
		if (error == 0)
			atomic_fetch_add(&ended, 1);
	}
	atomic_fetch_sub(&writing, 1);
	return NULL;
}

static int count(struct range *range, void *data)
{
	++*(size_t *)data;
	return 0;
}

static void *count_all(void *number)
{
	size_t last = SHARED;

	pthread_barrier_wait(&start_line);
	do {
		size_t many = 0;

		/* Nothing is added, so there are never more than before. */
		expect(registry_each(reg, count, &many) == 0);
		expect(many <= last);
		last = many;
	} while (atomic_load(&writing) > 0);
	return NULL;
}

static void scene_handles(void)
{
	for (unsigned nth = 0; nth < SHARED; nth++)
		shared[nth] = add(nth * 3 + 1, nth * 3 + 10, NULL);
	race(end_all, count_all);
	expect(atomic_load(&ended) == SHARED);
	expect(registry_empty(reg));
}

/*
 * Scene "fork". Children are made while writers write: each finds a registry that is whole, and can write itself.
 *
 * A child's memory comes from here. libc's allocator is whole after a fork, but not a sanitizer's: a thread that is not
 * there in the child may have been in it, and malloc() would wait for ever. So a child that hangs, hangs in the registry.
 */
#define CHILDREN 20
#define CHILD_MEMORY 4096

void *__real_malloc(size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void __wrap_free(void *memory);

static bool is_child;
static _Alignas(16) char child_memory[CHILD_MEMORY];
static size_t child_used;

void *__wrap_malloc(size_t bytes)
{
	void *memory = child_memory + child_used;

	if (!is_child)
		return __real_malloc(bytes);
	bytes = (bytes + 15) / 16 * 16;
	expect(bytes <= CHILD_MEMORY - child_used);
	child_used += bytes;
	return memory;
}

void __wrap_free(void *memory)
{
	if (!is_child)
		__real_free(memory);
}

static void child(void)
{
	is_child = true;
	alarm(20);
	registry_postfork_child(reg);
	for (unsigned nth = 0; nth < PILLARS; nth++)
		look_at_one(PILLAR_AT(nth));
	look_at_all();
	expect(registry_remove(reg, add(5, 6, NULL), NULL) == 0);
	_exit(0);
}

static void *bear(void *number)
{
	pthread_barrier_wait(&start_line);
	for (unsigned nth = 0; nth < CHILDREN / READERS; nth++) {
		pid_t pid;
		int status;

		registry_prefork(reg);
		pid = fork();
		if (pid == 0)
			child();
		registry_postfork_parent(reg);
		expect(pid > 0);
		expect(waitpid(pid, &status, 0) == pid);
		if (status != 0)
			fail("child %u of thread %u ended with wait status %#x", nth, (unsigned)(uintptr_t)number,
			     status);
	}
	return NULL;
}

static void scene_fork(void)
{
	for (unsigned nth = 0; nth < PILLARS; nth++)
		add(PILLAR_AT(nth), PILLAR_AT(nth) + 1, NULL);
	race(move_curtains, bear);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*play)(void);
	} scenes[] = {
		{"snapshot", scene_snapshot},
		{"references", scene_references},
		{"handles", scene_handles},
		{"fork", scene_fork},
	};
	const struct registry_hooks hooks = {.release = free_attachment};

	expect(registry_create(&hooks, &reg) == 0);
	for (size_t at = 0; argc == 2 && at < sizeof scenes / sizeof *scenes; at++) {
		if (strcmp(argv[1], scenes[at].name) != 0)
			continue;
		scenes[at].play();
		registry_destroy(&reg);
		return 0;
	}
	fprintf(stderr, "usage: registry_threads snapshot|references|handles|fork\n");
	return 2;
}
