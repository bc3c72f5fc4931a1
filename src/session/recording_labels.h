/* What a recording says about where a process runs. */
#ifndef PTMEM_RECORDING_LABELS_H
#define PTMEM_RECORDING_LABELS_H

struct recording;
struct session;

/* The name, control group and container of a process that ptmem attached to. */
void recording_labels_fill(const struct session *s, struct recording *out);

#endif
