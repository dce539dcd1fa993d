/* What `cuconst scan --format=json` prints of one kernel: one object and a line's end. */
#ifndef CUCONST_TOOLS_SCAN_JSON_H
#define CUCONST_TOOLS_SCAN_JSON_H

#include "tools/scan_image.h"

void scan_put_json(const char *file, const struct scan_kernel *kernel);

#endif
