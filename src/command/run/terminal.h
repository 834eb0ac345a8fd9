/*
 * The terminal that the program was started on: raw while a command owns it, restored on every way
 * out; and pseudo-terminals.
 */
#ifndef BP_RUN_TERMINAL_H
#define BP_RUN_TERMINAL_H

#include <stdbool.h>
#include <termios.h>

#include <bugpack/error.h>

typedef struct bp_run_terminal {
    int fd; /* borrowed; -1: there is none, and every call does nothing */
    bool is_raw, was_taken;
    struct termios before;
    struct termios lent; /* what the command's pseudo-terminal had at first */
} bp_run_terminal;

/* False, and no terminal, when the settings cannot be read. */
bool bp_run_terminal_init(bp_run_terminal *terminal, int fd);

/* True if it is gone: its window was closed, its line was cut. */
bool bp_run_terminal_has_hung_up(const bp_run_terminal *terminal);

/*
 * Where our process group may read it now, which it may not after a shell's "&", makes it pass
 * every byte through, both ways, and gives the command's pseudo-terminal its window size. Call it
 * again after this program was stopped: a shell may have changed the settings, and those are then
 * restored. When this program is killed, the monitor (child.h) restores them.
 */
bool bp_run_terminal_take(bp_run_terminal *terminal, int master);
void bp_run_terminal_restore(bp_run_terminal *terminal);

/*
 * Opens a pseudo-terminal, both ends close-on-exec, with the settings `like` (NULL: one that
 * changes no byte) and the window size of the terminal `size_of`. Errors: IO.
 */
bugpack_status bp_run_pty_open(const struct termios *like, int size_of, int *ret_master,
                               int *ret_slave, bugpack_error *error);

/* Copies the window size of a terminal to a pseudo-terminal. */
void bp_run_pty_copy_size(int size_of, int master);

#endif
