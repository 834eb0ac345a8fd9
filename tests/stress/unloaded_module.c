/* A library that calls its host when it is unloaded; see dlopen_host.c. */
#include <stddef.h>

__attribute__((visibility("default"))) void (*on_unload)(void);

__attribute__((destructor)) static void unload(void) {
    if (on_unload != NULL) {
        on_unload();
    }
}
