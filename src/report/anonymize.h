/*
 * A copy of a recording to be sent to others: structure and numbers stay; names of functions,
 * files, objects, threads, types and the command line become words that say nothing.
 *
 *	shop::Cart::add(shop::Item const&)       lodabi::Temu::sofiru(lodabi::Kanepo const&)
 *	/home/a/shop/cart.cpp                    /home/wi/lodabi/temukalo.cpp
 *
 * What is public stays: standard libraries, the kinds of names, keywords. A name is the same word
 * wherever it occurs, in all recordings that were made with the same key.
 */
#ifndef PTMEM_REPORT_ANONYMIZE_H
#define PTMEM_REPORT_ANONYMIZE_H

#include "base/types.h"

/*
 * Writes the copy of the recording in the @size bytes at @data to @path ("-": standard output).
 * @key: any text, which is needed to find out what a word was; NULL = one that is not kept.
 * 0; -EINVAL and *@why_out, which the caller frees, if it is no recording; else -errno.
 */
int anonymize(const char *data, size_t size, const char *key, const char *path, char **why_out);

#endif
