/* What bpf/ needs of libbpf's headers and of the kernel's helpers, for a program of the host with one map, and one
 * connection's storage.
 */
#ifndef BPF_HOST_H
#define BPF_HOST_H

#include <string.h>

#define SEC(name)
#define __ksym
#define __weak __attribute__((weak))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name
#define BPF_PROG(name, ...) name(__VA_ARGS__)
#define BPF_CORE_READ(object, field) ((object)->field)
#define BPF_CORE_READ_BITFIELD(object, field) ((object)->field)
#define HOST_ENTRIES 64

static struct {
	unsigned long long key[2];
	unsigned char value[128];
	_Bool used;
} host_map[HOST_ENTRIES];

static unsigned long host_lookups;

static inline unsigned long host_entries(void)
{
	unsigned long count = 0;

	for (int i = 0; i < HOST_ENTRIES; i++)
		count += host_map[i].used;
	return count;
}

static inline void *host_entry(const void *key)
{
	for (int i = 0; i < HOST_ENTRIES; i++)
		if (host_map[i].used && !memcmp(host_map[i].key, key, sizeof(host_map[i].key)))
			return &host_map[i];
	return NULL;
}

#define bpf_map_lookup_elem(map, wanted)						\
	({										\
		typeof(&host_map[0]) _entry = host_entry(wanted);			\
		host_lookups++;								\
		_Static_assert(sizeof(*(wanted)) == sizeof(_entry->key), "key");	\
		_Static_assert(sizeof(*(map)->value) <= sizeof(_entry->value), "value");	\
		_entry ? (typeof((map)->value))_entry->value : NULL;			\
	})

static inline int host_add(const void *key, const void *value, unsigned long size)
{
	if (host_entry(key))
		return -1;
	for (int i = 0; i < HOST_ENTRIES; i++)
		if (!host_map[i].used) {
			memcpy(host_map[i].key, key, sizeof(host_map[i].key));
			memcpy(host_map[i].value, value, size);
			host_map[i].used = 1;
			return 0;
		}
	return -1;
}

#define bpf_map_update_elem(map, key, value, flags) ((void)(map), host_add(key, value, sizeof(*(value))))
#define bpf_map_delete_elem(map, wanted)						\
	({										\
		typeof(&host_map[0]) _entry = host_entry(wanted);			\
		if (_entry)								\
			_entry->used = 0;						\
	})
#define bpf_loop(count, body, context, flags)						\
	for (unsigned int _i = 0; _i < (count) && !(body)(_i, context); _i++)		\
		;

static void *host_storage;	/* NULL until a program asks for it */

#define bpf_sk_storage_get(map, sk, first, flags)					\
	({										\
		static typeof(*(map)->value) _storage;					\
		(typeof(&_storage))(host_storage = &_storage);				\
	})
#define bpf_skc_to_tcp_sock(sk) ((struct tcp_sock *)(sk))

static inline unsigned int bpf_get_prandom_u32(void)
{
	static unsigned int number;

	return ++number;
}

static unsigned long long bpf_jiffies64(void);
static unsigned long long bpf_ktime_get_ns(void);

#endif
