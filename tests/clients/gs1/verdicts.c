/*
 * Asks GS1's engine (https://github.com/gs1/gs1-syntax-engine) about URIs, one a line of the input. A line of the output is
 *
 *     +<TAB>elements with brackets<TAB>canonical URI     the URI is taken
 *     -<TAB>why                                          it is refused
 *
 * Compile it with the sources of the engine's C library: see tests/it/gs1.rs.
 */

#include <stdio.h>
#include <string.h>

#include "gs1encoders.h"

static char line[1 << 16];

int main(void) {
    /* No options: the table of identifiers is the one that is compiled in. */
    gs1_encoder *engine = gs1_encoder_init_ex(NULL, NULL);
    if (!engine) {
        fputs("the engine does not start\n", stderr);
        return 1;
    }
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (gs1_encoder_setDataStr(engine, line)) {
            /* Both answers lie in the same buffer. */
            const char *elements = gs1_encoder_getAIdataStr(engine);
            printf("+\t%s", elements ? elements : "");
            const char *uri = gs1_encoder_getDLuri(engine, "https://id.example");
            printf("\t%s\n", uri ? uri : "");
        } else {
            printf("-\t%s\n", gs1_encoder_getErrMsg(engine));
        }
    }
    gs1_encoder_free(engine);
    return 0;
}
