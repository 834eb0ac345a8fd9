/*
 * What of a staged file differs from system to system: each call is implemented once per system
 * (linux/, darwin/, stub/). All but the first return 0, or -1 with errno.
 */
#ifndef BP_PLATFORM_STAGED_SYSTEM_H
#define BP_PLATFORM_STAGED_SYSTEM_H

/* Whether bp_staged_link_unnamed can give a name to this file, which has none. */
int bp_staged_is_linkable(int fd);

/* Gives the file its first name. Fails with EEXIST where `name` is taken, by whatever. */
int bp_staged_link_unnamed(int fd, int dir_fd, const char *name);

/* Brings what was written to the disk, as far down as the system can reach. */
int bp_staged_sync(int fd);

/*
 * Renames within `dir_fd`; EEXIST where `to` is taken, by whatever. Where that cannot be had in one
 * step it fails: it never replaces, and never holds the place with an empty file.
 */
int bp_staged_rename_new(int dir_fd, const char *from, const char *to);

#endif
