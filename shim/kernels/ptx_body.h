/* Reading one function: what ptx_body.c and ptx_statement.c share. */
#ifndef CUCONST_KERNELS_PTX_BODY_H
#define CUCONST_KERNELS_PTX_BODY_H

#include "shim/kernels/ptx_code.h"

/* Labels may be used before they stand somewhere: looked up at the end. */
struct ptxa_reference {
	struct ptxa_slice slice;
	uint32_t scope, line;
	uint32_t from; /* instruction, or place in the function's targets */
	enum { PTX_REFERENCE_BRANCH, PTX_REFERENCE_TABLE, PTX_REFERENCE_TARGETS } kind;
};

struct ptxa_body {
	struct ptxa_program *program;
	struct ptxa_function *function;
	struct ptxa_lexer lexer;
	struct ptxa_names *names;
	uint32_t *scopes; /* scope: the one around it */
	uint32_t scope, scope_count, scope_room, depth;
	struct ptxa_reference *references;
	uint32_t reference_count, reference_room;
};

/* Innermost scope first, the module's last. NULL: none. */
struct ptxa_name *ptxa_body_find(struct ptxa_body *body, struct ptxa_slice slice, uint32_t scope);
/* One of the registers of a declaration with a count; NULL: none, or no memory. */
struct ptxa_name *ptxa_body_numbered(struct ptxa_body *body, struct ptxa_slice slice);
bool ptxa_body_refer(struct ptxa_body *body, struct ptxa_slice slice, uint32_t from, int kind);

/* ptx_statement.c: one instruction with its guard. False when stopped. */
bool ptxa_statement_read(struct ptxa_body *body);

#endif
