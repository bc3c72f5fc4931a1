/* a list, freed in another order than made */
#include <stdlib.h>
struct item { struct item *next; char text[]; };
int main(void)
{
	struct item *list = NULL, *rest = NULL;
	for (int i = 0; i < 3000; i++) {
		struct item *e = malloc(sizeof(*e) + i % 300);
		e->next = list;
		list = e;
	}
	for (int i = 0; list; i++) {
		struct item *e = list;
		list = e->next;
		if (i % 3 == 0) {
			e->next = rest;
			rest = e;
		} else {
			free(e);
		}
	}
	while (rest) {
		struct item *e = rest;
		rest = e->next;
		free(e);
	}
	return 0;
}
