/* The variables of each thread end at an odd address: the library that has them is loaded last. */
#ifdef OUTER
char *odd_bytes(void);
char *outer(void);
char *outer(void)
{
	return odd_bytes();
}
#else
static __thread char bytes[3];
char *odd_bytes(void);
char *odd_bytes(void)
{
	return bytes;
}
#endif
