/* Stream capture: what is issued is recorded, not run. */
#ifndef CUCONST_EFFECTS_CAPTURE_H
#define CUCONST_EFFECTS_CAPTURE_H

#include <stdbool.h>

#include "shim/driver.h"

/* Is this stream being captured (or its capture invalidated)? Asks the driver only while some capture runs in the process. */
bool capture_is_running(CUstream stream);

/* Does any capture run in this process? One load. */
bool capture_anywhere(void);

/* A context is gone, and the captures in its streams with it. */
void capture_context_ended(CUcontext context);

/* fork child: no capture runs. */
void capture_reset(void);

#endif
