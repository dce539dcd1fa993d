#include "tools/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROCESSES 16

static bool maps_cuda(pid_t pid)
{
	char path[64];
	char *line = NULL;
	size_t room = 0;
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (!found && getline(&line, &room, file) > 0)
		found = strstr(line, "/libcuda.so") != NULL;
	free(line);
	fclose(file);
	return found;
}

/* Appends the children of `pid` to the list. */
static int children(pid_t pid, pid_t *list, int count)
{
	char path[64];
	char *line = NULL, *at, *end;
	size_t room = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	file = fopen(path, "re");
	if (!file)
		return count;
	if (getline(&line, &room, file) > 0) {
		for (at = line; count < PROCESSES; at = end) {
			long child = strtol(at, &end, 10);

			if (end == at || child <= 0)
				break;
			list[count++] = (pid_t)child;
		}
	}
	free(line);
	fclose(file);
	return count;
}

bool watch_maps_cuda(pid_t pid)
{
	pid_t list[PROCESSES] = {pid};
	int count = 1;

	for (int i = 0; i < count; i++) {
		if (maps_cuda(list[i]))
			return true;
		count = children(list[i], list, count);
	}
	return false;
}
