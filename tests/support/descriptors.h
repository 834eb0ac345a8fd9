#ifndef SUPPORT_DESCRIPTORS_H
#define SUPPORT_DESCRIPTORS_H

/* How many descriptors below 1,024 are open, without those of a pipe that has more than four: a
 * session holds copies of one in reserve while it is idle, and gives them up for a report. */
unsigned count_descriptors(void);

/* How many entries a directory has, with "." and "..". */
unsigned count_entries(const char *path);

/* Ends the program unless the process has so many entries in /proc/self/task, now or soon: a thread
 * is listed for a moment after it was joined. */
void expect_threads(unsigned wanted);

#endif
