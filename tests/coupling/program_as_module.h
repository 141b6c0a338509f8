/* What a BPF program of bpf/ asks of its loader, for a module of the laboratory kernel that compiles from its source.
 *
 * The kernel's own structures and functions take the place of bpf/kernel.h. The map is a hash of the module: the guest
 * has one processor, so an entry can be freed at once. Names are counted, so that the guest draws no random number more.
 */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wunused-function"

#include <linux/hash.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <net/mptcp.h>
#include <net/tcp.h>

#include "protocol.h"

#define PLAIT_BPF_KERNEL_H
#define BPF_MAP_TYPE_LRU_HASH 9
#define BPF_NOEXIST 1
#define SEC(name)
#define BPF_CORE_READ(from, field) ((from)->field)
#define __uint(name, value) int name
#define __type(name, type) type name
#define bpf_jiffies64() get_jiffies_64()
#define bpf_map_lookup_elem(map, key) map_lookup(key)
#define bpf_map_update_elem(map, key, value, flags) map_add(key, value, sizeof(*(value)))
#define bpf_map_delete_elem(map, key) map_delete(key)
#define bpf_loop(times, function, context, flags)						\
	do {											\
		u32 each;									\
		for (each = 0; each < (times) && !function(each, context); each++)		\
			;									\
	} while (0)
#define bpf_get_prandom_u32() (++names)
#undef noinline
#define noinline __noinline__
#undef module_init	/* the sources register themselves under the names of the kernel's own modules */
#undef module_exit
#define module_init(function)
#define module_exit(function)

#define plait_module_ops tcp_congestion_ops
#define PLAIT_CONGESTION_CONTROL(algorithm, of_ssthresh, of_set_state, of_pkts_acked)		\
	static struct tcp_congestion_ops algorithm##_program = {				\
		.init = algorithm##_init, .release = plait_coupled_release,			\
		.ssthresh = of_ssthresh, .cong_avoid = algorithm##_cong_avoid,			\
		.undo_cwnd = tcp_reno_undo_cwnd, .set_state = of_set_state,			\
		.pkts_acked = of_pkts_acked, .flags = TCP_CONG_NON_RESTRICTED,			\
		.owner = THIS_MODULE, .name = #algorithm "_bpf",				\
	}

struct map_entry {
	struct hlist_node node;
	struct { u64 connection; u32 token, index; } key;
	u64 value[8];
};

static struct hlist_head map_entries[256];
static DEFINE_SPINLOCK(map_lock);
static u32 names;

static struct hlist_head *map_bucket(const void *key)
{
	return &map_entries[hash_32(((const u32 *)key)[2], 8)];
}

static struct map_entry *map_find(const void *key)
{
	struct map_entry *entry;

	hlist_for_each_entry_rcu(entry, map_bucket(key), node, true)
		if (!memcmp(&entry->key, key, sizeof(entry->key)))
			return entry;
	return NULL;
}

static void *map_lookup(const void *key)
{
	struct map_entry *entry = map_find(key);

	return entry ? entry->value : NULL;
}

static int map_add(const void *key, const void *value, size_t size)
{
	struct map_entry *entry = kzalloc(sizeof(*entry), GFP_ATOMIC);
	int code = entry && size <= sizeof(entry->value) ? 0 : -ENOMEM;

	spin_lock_bh(&map_lock);
	if (!code && map_find(key))
		code = -EEXIST;
	if (!code) {
		memcpy(&entry->key, key, sizeof(entry->key));
		memcpy(entry->value, value, size);
		hlist_add_head_rcu(&entry->node, map_bucket(key));
	}
	spin_unlock_bh(&map_lock);
	if (code)
		kfree(entry);
	return code;
}

static void map_delete(const void *key)
{
	struct map_entry *entry;

	spin_lock_bh(&map_lock);
	entry = map_find(key);
	if (entry)
		hlist_del_rcu(&entry->node);
	spin_unlock_bh(&map_lock);
	kfree(entry);
}
