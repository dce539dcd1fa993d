/* Reserved address ranges and what is mapped in them. Internal to twins/. */
#ifndef CUCONST_TWINS_SPACE_H
#define CUCONST_TWINS_SPACE_H

#include "shim/twins/twin.h"

enum mapping_state {
	MAPPING_PLAIN,    /* not mirrored */
	MAPPING_MIRRORED, /* mapped in the twin, too */
	MAPPING_LEAVING,  /* the program is unmapping it: not mirrored, and not to be */
};

struct mapping {
	uint64_t start, bytes;
	uint64_t readers; /* devices, as bits, that may read the mirror */
	enum mapping_state state;
};

#define SPACE_STUCK 4

/* One reserved address range. Whoever entered it owns all members but `start`, `bytes` and `busy`. */
struct space {
	uint64_t start, bytes;
	uint64_t twin; /* where its twin starts; 0: there is none */
	uint64_t name; /* twin_hooks.made()'s */
	bool found;    /* nobody saw it being reserved: its bounds are those of the mappings that were found */
	bool broken;   /* not all that is readable could be mirrored: no address of it has a twin */
	bool busy;     /* somebody entered it; under the table's lock */
	/*
	 * Of the twin, what could not be unmapped: it keeps memory, and is tried again. More than there is room for: at
	 * the end of the twin.
	 */
	struct {
		uint64_t start, bytes;
	} stuck[SPACE_STUCK];
	size_t stuck_count;       /* beyond SPACE_STUCK: counted only */
	struct mapping *mappings; /* by ascending start */
	size_t count, room;
};

static inline uint64_t space_end(const struct space *space)
{
	return space->start + space->bytes;
}

/*
 * The space that holds the address, entered: nobody else enters it before space_leave(). Waits for who is inside. NULL:
 * none. The lock is not held afterwards, so driver calls may be made.
 */
struct space *space_enter(uint64_t address);
void space_leave(struct space *space);

/* Is the address in a space? Does not wait. */
bool space_is_known(uint64_t address);

/* The first space that ends above `address`, or NULL when it starts at or above `end`: for walks. Entered. */
struct space *space_enter_next(uint64_t address, uint64_t end);

/* Adds an empty space, which comes back entered; NULL: it would overlap another, or no memory. */
struct space *space_add(uint64_t start, uint64_t bytes);

/* Takes an entered space out of the table, still entered: nobody finds it any more. Back in, or freed. */
void space_take_out(struct space *space);
void space_put_back(struct space *space);
void space_free(struct space *space);

/* Adds a mapping; false: no memory, or it would overlap another. */
bool space_add_mapping(struct space *space, uint64_t start, uint64_t bytes);
/* Forgets the mappings that lie in [start, end). */
void space_remove_mappings(struct space *space, uint64_t start, uint64_t end);

/* fork child. */
void spaces_reset(void);

#endif
