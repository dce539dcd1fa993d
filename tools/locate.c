#include "tools/locate.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/tool.h"

/* Seen from the tool's folder. An installation comes first; then the build folder, where the tool lies in tools/. */
static const char *const library_places[] = {
	"../lib/cuconst/libcuconst.so",
	"../lib64/cuconst/libcuconst.so",
	"../lib/x86_64-linux-gnu/cuconst/libcuconst.so",
	"../lib/libcuconst.so",
	"../lib64/libcuconst.so",
	"../lib/x86_64-linux-gnu/libcuconst.so",
	"libcuconst.so",
	"../shim/doors/libcuconst.so",
	"../shim/libcuconst.so",
};

static const char *const python_places[] = {
	"../share/cuconst/python", "python", "../../tools/python", /* a build folder inside the source tree */
};

static char *own_folder(void)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	if (length <= 0)
		return NULL;
	path[length] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		return NULL;
	*slash = '\0';
	return strdup(path);
}

/* NULL when `path` can be preloaded, else what is wrong with it. */
static const char *library_fault(const char *path)
{
	unsigned char ident[EI_NIDENT] = {0};
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *fault = NULL;

	if (fd < 0)
		return strerror(errno);
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		fault = "not a file";
	else if (read(fd, ident, sizeof(ident)) != (ssize_t)sizeof(ident) || memcmp(ident, ELFMAG, SELFMAG) != 0)
		fault = "not a shared library";
	else if (ident[EI_CLASS] != ELFCLASS64)
		fault = "not a 64-bit library";
	close(fd);
	return fault;
}

static const char *python_fault(const char *path)
{
	char *init = tool_format("%s/cuconst/__init__.py", path);
	const char *fault = access(init, R_OK) == 0 ? NULL : "no cuconst/__init__.py in it";

	free(init);
	return fault;
}

static char *resolved(const char *path)
{
	char *real = realpath(path, NULL);

	return real ? real : strdup(path);
}

static char *find(const char *what, const char *const *places, size_t count, const char *(*fault_of)(const char *),
                  FILE *err)
{
	char *folder = own_folder();
	char *found = NULL;

	for (size_t i = 0; i < count && folder && !found; i++) {
		char *path = tool_format("%s/%s", folder, places[i]);

		if (!fault_of(path))
			found = resolved(path);
		free(path);
	}
	if (!found && err) {
		fprintf(err, "cuconst: %s was not found. Looked for:\n", what);
		for (size_t i = 0; i < count && folder; i++) {
			char *path = tool_format("%s/%s", folder, places[i]);
			const char *fault = fault_of(path);

			fprintf(err, "cuconst:   %s: %s\n", path, fault ? fault : "was not there a moment ago");
			free(path);
		}
	}
	free(folder);
	return found;
}

char *locate_library(const char *wanted, FILE *err)
{
	const char *from = "--library";
	const char *fault;
	char *found;

	if (!wanted) {
		wanted = getenv("CUCONST_LIBRARY");
		from = "$CUCONST_LIBRARY";
	}
	if (wanted && *wanted) {
		fault = library_fault(wanted);
		if (!fault)
			return resolved(wanted);
		fprintf(err, "cuconst: %s: %s: %s\n", from, wanted, fault);
		return NULL;
	}
	found = find("libcuconst.so", library_places, sizeof(library_places) / sizeof(library_places[0]), library_fault,
	             err);
	if (!found)
		fprintf(err, "cuconst: give its path with --library PATH or CUCONST_LIBRARY\n");
	return found;
}

char *locate_python(FILE *err)
{
	const char *wanted = getenv("CUCONST_PYTHON");
	char *found;

	if (wanted && *wanted) {
		const char *fault = python_fault(wanted);

		if (!fault)
			return resolved(wanted);
		if (err)
			fprintf(err, "cuconst: $CUCONST_PYTHON: %s: %s\n", wanted, fault);
		return NULL;
	}
	found = find("the Python module cuconst", python_places, sizeof(python_places) / sizeof(python_places[0]),
	             python_fault, err);
	if (!found && err)
		fprintf(err, "cuconst: give its folder with CUCONST_PYTHON\n");
	return found;
}

/* 0, or the errno execvp() would remember for this candidate. */
static int runnable(const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return errno;
	return S_ISREG(st.st_mode) && access(path, X_OK) == 0 ? 0 : EACCES;
}

char *locate_program(const char *name)
{
	const char *path = getenv("PATH");
	int seen = ENOENT;

	if (!*name) {
		errno = ENOENT;
		return NULL;
	}
	if (strchr(name, '/')) {
		seen = runnable(name);
		if (seen == 0)
			return strdup(name);
		errno = seen;
		return NULL;
	}
	if (!path)
		path = "/bin:/usr/bin";
	while (true) {
		size_t length = strcspn(path, ":");
		char *candidate = length ? tool_format("%.*s/%s", (int)length, path, name) : tool_format("./%s", name);
		int code = runnable(candidate);

		if (code == 0)
			return candidate;
		free(candidate);
		if (code == EACCES)
			seen = EACCES;
		if (path[length] == '\0')
			break;
		path += length + 1;
	}
	errno = seen;
	return NULL;
}

char *locate_absolute(const char *path)
{
	char folder[PATH_MAX];

	if (*path == '/' || !getcwd(folder, sizeof(folder)))
		return strdup(path);
	return tool_format("%s/%s", strcmp(folder, "/") == 0 ? "" : folder, path);
}
