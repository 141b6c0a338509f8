/* SPDX-License-Identifier: GPL-2.0 */
/* Settings of a scheduler, per network namespace: /proc/sys/net/mptcp_NAME/SETTING.
 *
 *	static const struct plait_setting mine_settings[] = {
 *		{ "quantum", 2800, 1, 65535 },
 *	};
 *	PLAIT_SETTINGS(mine, mine_settings);
 *	... mine_get(sock_net(sk), 0) ...
 *	... register_pernet_subsys(&mine_net_ops) before the scheduler is registered ...
 *
 * A module parameter would be one value for all hosts of an experiment, and would have to be on the kernel's command
 * line, which is the same everywhere on purpose.
 */
#ifndef PLAIT_SETTINGS_H
#define PLAIT_SETTINGS_H

#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysctl.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#define PLAIT_SETTINGS_MOST	4

struct plait_setting {
	const char *name;
	unsigned int initial;
	unsigned int least;
	unsigned int most;
};

/* What a namespace holds of one scheduler's settings. */
struct plait_settings {
	unsigned int value[PLAIT_SETTINGS_MOST];
	struct ctl_table table[PLAIT_SETTINGS_MOST];
	struct ctl_table_header *header;
};

static inline int plait_settings_make(struct net *net, struct plait_settings *settings, const char *path,
				      const struct plait_setting *setting, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		struct ctl_table *entry = &settings->table[i];

		settings->value[i] = setting[i].initial;
		entry->procname = setting[i].name;
		entry->data = &settings->value[i];
		entry->maxlen = sizeof(settings->value[i]);
		entry->mode = 0644;
		entry->proc_handler = proc_douintvec_minmax;
		entry->extra1 = (void *)&setting[i].least;
		entry->extra2 = (void *)&setting[i].most;
	}
	settings->header = register_net_sysctl_sz(net, path, settings->table, n);
	return settings->header ? 0 : -ENOMEM;
}

/* Defines NAME_get(net, index) and NAME_net_ops. */
#define PLAIT_SETTINGS(name, list)							\
static unsigned int name##_net_id __read_mostly;					\
static unsigned int name##_get(const struct net *net, int index)			\
{											\
	const struct plait_settings *settings = net_generic(net, name##_net_id);	\
											\
	return READ_ONCE(settings->value[index]);					\
}											\
static int __net_init name##_net_init(struct net *net)					\
{											\
	BUILD_BUG_ON(ARRAY_SIZE(list) > PLAIT_SETTINGS_MOST);				\
	return plait_settings_make(net, net_generic(net, name##_net_id),		\
				   "net/mptcp_" #name, list, ARRAY_SIZE(list));		\
}											\
static void __net_exit name##_net_exit(struct net *net)					\
{											\
	struct plait_settings *settings = net_generic(net, name##_net_id);		\
											\
	unregister_net_sysctl_table(settings->header);					\
}											\
static struct pernet_operations name##_net_ops = {					\
	.init	= name##_net_init,							\
	.exit	= name##_net_exit,							\
	.id	= &name##_net_id,							\
	.size	= sizeof(struct plait_settings),					\
}

#endif
