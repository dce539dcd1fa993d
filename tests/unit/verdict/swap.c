/* The list of parameters that the driver gets for a launch again with twins: the program's own stay as they are. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/effects/launch_memo.h"
#include "shim/verdict/swap.h"

#define ROUNDS 2000000

static char room[SWAP_ROOM] __attribute__((aligned(16)));

Test(swap, an_address_alone_and_what_lies_beside_it)
{
	uint64_t address = 0x1000, other = 0x2000;
	uint8_t small = 7;
	void *params[] = {&small, &address, &other};
	const struct memo_twins twins = {
		.count = 1, .params = 3, .twin = {{.value = 0x1000, .twin = 0x9000, .argument = 1, .bytes = 8}}};
	void **list = swap_again(&twins, params, room);
	cr_assert(list[0] == &small && *(uint64_t *)list[1] == 0x9000 && list[2] == &other);
	cr_assert(params[1] == &address && address == 0x1000);
}

/* Two in one, the last of them at its end, and bytes behind that are no whole word. */
Test(swap, several_twins_in_one_parameter)
{
	struct {
		uint64_t word[100];
		char tail[5];
	} box, before, *copy;
	uint64_t address = 0x1000;
	void *params[] = {&box, &address};
	const struct memo_twins twins = {.count = 3,
	                                 .params = 2,
	                                 .twin = {{.twin = 0x9000, .argument = 0, .offset = 8, .bytes = 805},
	                                          {.twin = 0x9100, .argument = 1, .bytes = 8},
	                                          {.twin = 0x9200, .argument = 0, .offset = 792, .bytes = 805}}};
	memset(&box, 0x55, sizeof box);
	before = box;
	void **list = swap_again(&twins, params, room);
	copy = list[0];
	cr_assert(!memcmp(&box, &before, sizeof box) && params[0] == &box && address == 0x1000);
	cr_assert((char *)copy >= room && (char *)copy + 805 <= room + sizeof room && *(uint64_t *)list[1] == 0x9100);
	before.word[1] = 0x9000;
	before.word[99] = 0x9200;
	cr_assert(!memcmp(copy, &before, 805));
}

/* What lies behind a list, and behind a parameter, is nobody's business. */
Test(swap, nothing_beyond_is_read)
{
	char *end = (char *)mmap(NULL, 0x4000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + 0x2000;
	cr_assert_eq(mprotect(end, 0x2000, PROT_NONE), 0);
	void **params = (void **)(void *)(end - 16);
	params[0] = params[1] = end - 28;
	const struct memo_twins twins = {.count = 1, .params = 2, .twin = {{.twin = 1, .argument = 1, .bytes = 28}}};
	void **list = swap_again(&twins, params, room);
	cr_assert(list[0] == end - 28 && *(uint64_t *)list[1] == 1);
	params[1] = end - 12;
	const struct memo_twins last = {.count = 1, .params = 2, .twin = {{.twin = 1, .argument = 1, .bytes = 12}}};
	swap_again(&last, params, room);
}

static uint64_t boxes[2][2] = {{1, 2}, {1, 2}}, large[50];
static void *volatile shared[] = {large, boxes[0]};
static _Atomic bool stop;

static void *change(void *unused)
{
	for (unsigned i = 0; !stop; i++)
		shared[1] = boxes[i / 64 % 2];
	return NULL;
}

/* A program that is wrong, but none of its memory is written. */
Test(swap, a_list_that_another_thread_changes_meanwhile, .timeout = 60)
{
	const struct memo_twins twins = {.count = 2,
	                                 .params = 2,
	                                 .twin = {{.twin = 0x9000, .argument = 0, .bytes = sizeof large},
	                                          {.twin = 0x9000, .argument = 1, .offset = 8, .bytes = 16}}};
	pthread_t thread;
	cr_assert_eq(pthread_create(&thread, NULL, change, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		void **list = swap_again(&twins, (void **)(uintptr_t)shared, room);
		cr_assert((char *)list[1] >= room && (char *)list[1] < room + sizeof room);
	}
	stop = true;
	pthread_join(thread, NULL);
	cr_assert(boxes[0][1] == 2 && boxes[1][1] == 2);
}
