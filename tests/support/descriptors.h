#ifndef SUPPORT_DESCRIPTORS_H
#define SUPPORT_DESCRIPTORS_H

/* How many descriptors below 1,024 are open. All of one pipe count as one: a session holds copies
 * of one in reserve while it is idle, and gives them up for a report. */
unsigned count_descriptors(void);

#endif
