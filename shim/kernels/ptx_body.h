/* Reading one function: what ptx_body.c and ptx_statement.c share. */
#ifndef CUCONST_KERNELS_PTX_BODY_H
#define CUCONST_KERNELS_PTX_BODY_H

#include "shim/kernels/ptx_code.h"

/* Labels may be used before they stand somewhere: looked up at the end. */
struct ptx_reference {
	struct ptx_slice slice;
	uint32_t scope, line;
	uint32_t from; /* instruction, or place in the function's targets */
	enum { PTX_REFERENCE_BRANCH, PTX_REFERENCE_TABLE, PTX_REFERENCE_TARGETS } kind;
};

struct ptx_body {
	struct ptx_program *program;
	struct ptx_function *function;
	struct ptx_lexer lexer;
	struct ptx_names *names;
	uint32_t *scopes; /* scope: the one around it */
	uint32_t scope, scope_count, scope_room, depth;
	struct ptx_reference *references;
	uint32_t reference_count, reference_room;
};

/* Innermost scope first, the module's last. NULL: none. */
struct ptx_name *ptx_body_find(struct ptx_body *body, struct ptx_slice slice, uint32_t scope);
/* One of the registers of a declaration with a count; NULL: none, or no memory. */
struct ptx_name *ptx_body_numbered(struct ptx_body *body, struct ptx_slice slice);
bool ptx_body_refer(struct ptx_body *body, struct ptx_slice slice, uint32_t from, int kind);

/* ptx_statement.c: one instruction with its guard. False when stopped. */
bool ptx_statement_read(struct ptx_body *body);

#endif
