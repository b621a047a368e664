// SPDX-License-Identifier: GPL-2.0-only
/*
 * fakegpu: a GPU driver without a GPU, for tests in a virtual machine. It registers one dmem region
 * per "GPU", named as NVIDIA's open kernel modules name theirs, and charges what a process asks for
 * to that process's cgroup, as they do. No memory is allocated.
 *
 * This file is a kernel module and therefore the one file of the project that is not Apache-2.0. It
 * is in no image and in no program.
 *
 * /dev/fakegpu0, /dev/fakegpu1, … take one command per write(2); its errno is the controller's:
 *
 *   charge BYTES      charge the calling process's cgroup
 *   uncharge          give back the newest charge made through this open file
 *   unregister        drop the region; every charge must be given back. NVIDIA's driver does so
 *                     when the last client of a GPU closes it and persistence mode is off
 *   register [BYTES]  register it again and charge BYTES to the caller, as NVIDIA's does with what
 *                     the driver itself occupies
 *
 * read(2) answers the bytes held by this open file. close(2) of the last descriptor gives all back.
 */
#include <linux/cgroup_dmem.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#define MOST_GPUS 8

static unsigned int gpus = 2;
module_param(gpus, uint, 0444);
MODULE_PARM_DESC(gpus, "how many GPUs, 1 to 8");

static unsigned long gib = 16;
module_param(gib, ulong, 0444);
MODULE_PARM_DESC(gib, "capacity of each region in GiB");

static const char *const addresses[MOST_GPUS] = {
    "0000:41:00", "0000:c1:00", "0000:01:00", "0000:21:00",
    "0000:61:00", "0000:81:00", "0000:a1:00", "0000:e1:00",
};

struct gpu {
    struct miscdevice misc;
    char name[16];
    const char *address;
    struct mutex lock;
    struct dmem_cgroup_region *region;
    struct dmem_cgroup_pool_state *reserved_pool;
    u64 reserved;
    unsigned int charges;
};

struct charge {
    struct list_head node;
    struct dmem_cgroup_pool_state *pool;
    u64 bytes;
};

struct client {
    struct gpu *gpu;
    struct list_head charges;
    u64 held;
};

static struct gpu all[MOST_GPUS];

static struct dmem_cgroup_region *region_new(u64 size, const char *address)
{
#ifdef FAKEGPU_DMEM_INIT /* newer kernels pass a structure; kernel_build.sh looks which */
    return dmem_cgroup_register_region(&(struct dmem_cgroup_init){.size = size}, "nvidia/%s/vidmem",
                                       address);
#else
    return dmem_cgroup_register_region(size, "nvidia/%s/vidmem", address);
#endif
}

static int gpu_register(struct gpu *gpu, u64 reserved)
{
    int err = 0;

    if (gpu->region)
        return -EEXIST;
    gpu->region = region_new((u64)gib << 30, gpu->address);
    if (IS_ERR_OR_NULL(gpu->region)) {
        err = gpu->region ? PTR_ERR(gpu->region) : -ENODEV;
        gpu->region = NULL;
        return err;
    }
    gpu->reserved = reserved;
    if (reserved)
        err = dmem_cgroup_try_charge(gpu->region, reserved, &gpu->reserved_pool, NULL);
    if (err) {
        dmem_cgroup_unregister_region(gpu->region);
        gpu->region = NULL;
    }
    return err;
}

static int gpu_unregister(struct gpu *gpu)
{
    if (!gpu->region)
        return -ENODEV;
    if (gpu->charges)
        return -EBUSY;
    if (gpu->reserved)
        dmem_cgroup_uncharge(gpu->reserved_pool, gpu->reserved);
    dmem_cgroup_unregister_region(gpu->region);
    gpu->region = NULL;
    gpu->reserved = 0;
    return 0;
}

static int client_charge(struct client *client, u64 bytes)
{
    struct gpu *gpu = client->gpu;
    struct charge *charge;
    int err;

    if (!gpu->region)
        return -ENODEV;
    charge = kzalloc(sizeof(*charge), GFP_KERNEL);
    if (!charge)
        return -ENOMEM;
    err = dmem_cgroup_try_charge(gpu->region, bytes, &charge->pool, NULL);
    if (err) {
        kfree(charge);
        return err;
    }
    charge->bytes = bytes;
    list_add(&charge->node, &client->charges);
    client->held += bytes;
    gpu->charges++;
    return 0;
}

static int client_uncharge(struct client *client)
{
    struct charge *charge = list_first_entry_or_null(&client->charges, struct charge, node);

    if (!charge)
        return -ENOENT;
    dmem_cgroup_uncharge(charge->pool, charge->bytes);
    client->held -= charge->bytes;
    client->gpu->charges--;
    list_del(&charge->node);
    kfree(charge);
    return 0;
}

static int fakegpu_open(struct inode *inode, struct file *file)
{
    /* misc_open() left our struct miscdevice in private_data */
    struct gpu *gpu = container_of(file->private_data, struct gpu, misc);
    struct client *client = kzalloc(sizeof(*client), GFP_KERNEL);

    if (!client)
        return -ENOMEM;
    client->gpu = gpu;
    INIT_LIST_HEAD(&client->charges);
    file->private_data = client;
    return 0;
}

static int fakegpu_release(struct inode *inode, struct file *file)
{
    struct client *client = file->private_data;

    mutex_lock(&client->gpu->lock);
    while (!client_uncharge(client))
        ;
    mutex_unlock(&client->gpu->lock);
    kfree(client);
    return 0;
}

static int command(struct client *client, const char *line)
{
    unsigned long long bytes = 0;

    if (sscanf(line, "charge %llu", &bytes) == 1)
        return client_charge(client, bytes);
    if (!strncmp(line, "uncharge", 8))
        return client_uncharge(client);
    if (!strncmp(line, "unregister", 10))
        return gpu_unregister(client->gpu);
    if (sscanf(line, "register %llu", &bytes) == 1 || !strncmp(line, "register", 8))
        return gpu_register(client->gpu, bytes);
    return -EINVAL;
}

static ssize_t fakegpu_write(struct file *file, const char __user *from, size_t size,
                             loff_t *offset)
{
    struct client *client = file->private_data;
    char line[64];
    int err;

    if (size >= sizeof(line))
        return -EINVAL;
    if (copy_from_user(line, from, size))
        return -EFAULT;
    line[size] = '\0';

    mutex_lock(&client->gpu->lock);
    err = command(client, line);
    mutex_unlock(&client->gpu->lock);
    return err ? err : size;
}

static ssize_t fakegpu_read(struct file *file, char __user *to, size_t size, loff_t *offset)
{
    struct client *client = file->private_data;
    char line[32];

    return simple_read_from_buffer(to, size, offset, line, sprintf(line, "%llu\n", client->held));
}

static const struct file_operations fakegpu_fops = {
    .owner = THIS_MODULE,
    .open = fakegpu_open,
    .release = fakegpu_release,
    .read = fakegpu_read,
    .write = fakegpu_write,
};

static int gpu_add(struct gpu *gpu, unsigned int index)
{
    int err;

    mutex_init(&gpu->lock);
    snprintf(gpu->name, sizeof(gpu->name), "fakegpu%u", index);
    gpu->address = addresses[index];
    gpu->misc.minor = MISC_DYNAMIC_MINOR;
    gpu->misc.name = gpu->name;
    gpu->misc.fops = &fakegpu_fops;
    gpu->misc.mode = 0666;
    err = gpu_register(gpu, 0);
    if (err)
        return err;
    err = misc_register(&gpu->misc);
    if (err)
        gpu_unregister(gpu);
    return err;
}

static void gpus_remove(unsigned int count)
{
    while (count--) {
        misc_deregister(&all[count].misc);
        gpu_unregister(&all[count]);
    }
}

static int __init fakegpu_init(void)
{
    unsigned int index;

    if (gpus < 1 || gpus > MOST_GPUS)
        return -EINVAL;
    for (index = 0; index < gpus; index++) {
        int err = gpu_add(&all[index], index);

        if (err) {
            gpus_remove(index);
            return err;
        }
    }
    return 0;
}

static void __exit fakegpu_exit(void)
{
    gpus_remove(gpus);
}

module_init(fakegpu_init);
module_exit(fakegpu_exit);
MODULE_DESCRIPTION("dmem regions and charges without a GPU");
MODULE_LICENSE("GPL");
