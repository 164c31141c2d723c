/* keras_index.c - what a graph's config.json says of each name, found in one walk: files are hostile, and looking for a
   name anew at each place that mentions it would take squares of their length. */
#include <string.h>

#include "base/numbers/hash.h"
#include "model/keras/keras_nodes.h"

#define LEAST_ENTRIES 64 /* a power of two */

static uint64_t hash_of(const char *name)
{
    uint64_t hash = fnv1a_text(name);
    return hash ^ hash >> 32;
}

static struct keras_name *entry_of(const struct keras_index *index, const char *name)
{
    uint64_t mask = (uint64_t)index->entry_count - 1, at = hash_of(name) & mask;
    while (index->entry[at].name && strcmp(index->entry[at].name, name) != 0) {
        at = (at + 1) & mask;
        ++*index->steps;
    }
    ++*index->steps;
    return &index->entry[at];
}

const struct keras_name *keras_index_find(const struct keras_index *index, const char *name)
{
    const struct keras_name *found = entry_of(index, name);
    return found->name ? found : NULL;
}

static bool grow(struct keras_index *index)
{
    struct keras_index larger = *index;
    larger.entry_count = index->entry_count ? 2 * index->entry_count : LEAST_ENTRIES;
    larger.entry = arena_array(index->arena, (size_t)larger.entry_count, sizeof *larger.entry);
    if (!larger.entry)
        return false;
    for (int i = 0; i < index->entry_count; i++)
        if (index->entry[i].name)
            *entry_of(&larger, index->entry[i].name) = index->entry[i];
    *index = larger;
    return true;
}

struct keras_name *keras_index_add(struct keras_index *index, const char *name)
{
    if (2 * index->name_count >= index->entry_count && !grow(index))
        return NULL;
    struct keras_name *found = entry_of(index, name);
    if (!found->name) {
        *found = (struct keras_name){.name = name, .last_use = -1};
        index->name_count++;
    }
    return found;
}

/* Every [name, number, ...] in here; `read`: as what a layer is called with. */
static bool add_mentions(struct keras_index *index, const struct yaml *node, bool read)
{
    int64_t number;
    const char *first = node->kind == YAML_LIST && node->count >= 3 ? node_word(node->first) : NULL;
    const struct yaml *second = first ? node->first->next : NULL;
    ++*index->steps;
    if (second && second->text && setting_whole(&number, second->text) && number >= 0) {
        struct keras_name *name = keras_index_add(index, first);
        if (!name)
            return false;
        name->last_use = number > name->last_use ? number : name->last_use;
        name->read = name->read || read;
    }
    for (const struct yaml *child = node->first; child; child = child->next)
        if (child->kind != YAML_SCALAR && !add_mentions(index, child, read))
            return false;
    return true;
}

/* What a layer is called with, but for masks: those travel by themselves. */
static bool add_reads(struct keras_index *index, const struct yaml *layer)
{
    const struct yaml *nodes = layer->kind == YAML_MAP ? yaml_get(layer, "inbound_nodes") : NULL;
    for (const struct yaml *node = nodes ? nodes->first : NULL; node; node = node->next) {
        const struct yaml *args = node->kind == YAML_MAP ? yaml_get(node, "args") : node;
        const struct yaml *kwargs = node->kind == YAML_MAP ? yaml_get(node, "kwargs") : NULL;
        if (args && !add_mentions(index, args, true))
            return false;
        for (const struct yaml *word = kwargs && kwargs->kind == YAML_MAP ? kwargs->first : NULL; word;
             word = word->next)
            if (!strstr(word->key, "mask") && !add_mentions(index, word, true))
                return false;
    }
    return true;
}

/* What is read by an op that is read itself. Layers stand behind those that they read: once, from the last on. */
static bool reads_through_masks(struct keras_index *index, const struct yaml *layers)
{
    const struct yaml **all = arena_array(index->arena, (size_t)layers->count + 1, sizeof *all);
    int64_t count = 0;
    for (const struct yaml *layer = layers->first; all && layer; layer = layer->next)
        if (is_mask_op(layer))
            all[count++] = layer;
    for (int64_t i = count - 1; i >= 0; i--) {
        const char *own = node_word(yaml_get(all[i], "name"));
        const struct keras_name *name = own ? keras_index_find(index, own) : NULL;
        if (name && name->read && !add_reads(index, all[i]))
            return false;
    }
    return all != NULL;
}

static bool add_layer(struct keras_index *index, const struct yaml *layer)
{
    const char *own = layer->kind == YAML_MAP ? node_word(yaml_get(layer, "name")) : NULL;
    bool reads = !is_mask_op(layer);
    struct keras_name *name = own ? keras_index_add(index, own) : NULL;
    if (own && !name)
        return false;
    if (name && !name->layer)
        name->layer = layer;
    if (reads && !add_reads(index, layer))
        return false;
    return add_mentions(index, layer, false) && add_masks(index, layer);
}

plim_status keras_index_init(struct keras_index *index, const struct translation *t, const struct yaml *config)
{
    const struct yaml *layers = yaml_get(config, "layers"), *outputs = yaml_get(config, "output_layers");
    *index = (struct keras_index){.arena = t->work, .steps = t->steps};
    bool made = grow(index);
    for (const struct yaml *layer = layers->first; made && layer; layer = layer->next)
        made = add_layer(index, layer);
    made = made && (!outputs || add_mentions(index, outputs, true)) && reads_through_masks(index, layers);
    for (const struct yaml *layer = layers->first; made && layer; layer = layer->next)
        made = find_masks_only(index, layer);
    return made ? PLIM_OK : arena_refused(t->work, t->error);
}
