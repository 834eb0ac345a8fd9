#include "../criterion.h" /* comparisons are in it */
