#include "shim/kernels/ptx_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/ptx_code.h"

static unsigned target(const char *text, size_t bytes)
{
	struct ptxa_lexer lexer;
	unsigned sm = 0;

	ptxa_lex_start(&lexer, text, bytes);
	while (lexer.token.kind != PTX_TOKEN_END && lexer.token.kind != PTX_TOKEN_BAD && !ptxa_lex_dot(&lexer, "target"))
		ptxa_lex_next(&lexer);
	ptxa_lex_next(&lexer);
	if (lexer.token.kind == PTX_TOKEN_WORD && lexer.token.slice.length > 3 &&
	    memcmp(lexer.token.slice.text, "sm_", 3) == 0)
		for (uint32_t i = 3; i < lexer.token.slice.length && i < 7 && lexer.token.slice.text[i] >= '0' &&
		                     lexer.token.slice.text[i] <= '9';
		     i++)
			sm = 10 * sm + (unsigned)(lexer.token.slice.text[i] - '0');
	return sm;
}

int ptx_kernels(const char *text, size_t bytes, int (*each)(void *ctx, const char *name, size_t length), void *ctx,
                unsigned *ret_sm)
{
	struct ptxa_program program = {.text = text, .bytes = bytes};
	struct ptxa_lexer lexer;
	int answer = 0;

	if (bytes > PTX_TEXT_MAX)
		return -EINVAL;
	ptxa_lex_start(&lexer, text, bytes);
	if (!ptxa_lex_dot(&lexer, "version"))
		return -EINVAL;
	program.names = ptxa_names_create();
	if (!program.names)
		return -ENOMEM;
	if (!ptxa_module_read(&program))
		answer = program.error ? program.error : -EINVAL;
	for (uint32_t i = 0; i < program.function_count && (answer == 0 || answer == -EINVAL); i++) {
		const struct ptxa_function *function = &program.functions[i];
		int told = function->is_entry && function->has_body
		                   ? each(ctx, function->name.text, function->name.length)
		                   : 0;

		answer = told ? told : answer;
	}
	free(program.functions);
	free(program.variables);
	free(program.cells);
	ptxa_names_destroy(program.names);
	if (ret_sm)
		*ret_sm = target(text, bytes);
	return answer;
}
