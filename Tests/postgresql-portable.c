/* A proxy that makes a PostgreSQL server behave like an engine that speaks its wire, and lacks what such engines lack:
 *
 *   postgresql-portable SERVER_SOCKET SOCKET MODE EVERY
 *
 * It refuses (0A000) statements that name numbers of transactions, snapshots that can be exported, LISTEN and NOTIFY, deferrable constraints, locks of
 * tables, and, with MODE `missing`, advisory locks. With MODE `silent` these are accepted and lock nothing: they are functions of the schema
 * strata_silent.
 *
 * Some COMMITs are answered by 40001, and the transaction is rolled back. If EVERY is a number, then these are one in so many COMMITs of all
 * connections; none with 0. If EVERY is `each`, then they do not depend on what others do: on each connection every second COMMIT, beginning with the
 * first. So a transaction that is made again on its connection is refused exactly once. Those that ask for the end of another one by its receipt are
 * not refused with `each`, as they are made again on a new connection each time.
 *
 * A transaction that begins by plain SQL (BEGIN without a setting after it) is never refused: a test or a scenario begins it, and nobody would make
 * it again.
 *
 * Functions in a schema before pg_catalog would not do: stores write `pg_catalog.` before functions, and LISTEN and COMMIT are no functions. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char *server_path;
static bool is_silent;
static bool refuses_each;
static unsigned long every;
static atomic_ulong commits;

/* A statement that the server refuses when it parses it: 0A000. */
static const char unsupported[] = "SELECT DISTINCT 1 FROM pg_catalog.pg_class FOR UPDATE";
/* A commit that the server refuses: it has no prepared transactions, and rolls back. Its code becomes 40001 on the way back. */
static const char refused_commit[] = "PREPARE TRANSACTION 'strata'";

static const char *const missing[] = {"pg_current_xact_id(", "pg_xact_status(",         "pg_export_snapshot(", "pg_current_snapshot(",
                                      "pg_notify(",          "SET TRANSACTION SNAPSHOT", "DEFERRABLE",          "LOCK TABLE"};

struct connection {
    int client, server;
    atomic_int ends;
};

/* Bytes that were received and not used, and bytes that were not sent. */
struct stream {
    int from, to;
    size_t start, end, waiting;
    /* Whether the open transaction is plain SQL, whether it asks for a receipt, and whether the COMMIT before was refused. */
    bool is_plain, asks, was_refused;
    char in[65536], out[65536];
};

static bool send_all(int to, const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t done = send(to, bytes, count, MSG_NOSIGNAL);
        if (done <= 0) return false;
        bytes += done;
        count -= (size_t)done;
    }
    return true;
}

static bool flush_stream(struct stream *stream) {
    bool is_sent = send_all(stream->to, stream->out, stream->waiting);
    stream->waiting = 0;
    return is_sent;
}

static bool put(struct stream *stream, const char *bytes, size_t count) {
    if (stream->waiting + count > sizeof stream->out && !flush_stream(stream)) return false;
    if (count > sizeof stream->out) return send_all(stream->to, bytes, count);
    memcpy(stream->out + stream->waiting, bytes, count);
    stream->waiting += count;
    return true;
}

/* What is complete is sent before a wait. */
static bool fill(struct stream *stream) {
    if (stream->start < stream->end) return true;
    if (stream->waiting > 0 && !flush_stream(stream)) return false;
    ssize_t count = recv(stream->from, stream->in, sizeof stream->in, 0);
    if (count <= 0) return false;
    stream->start = 0;
    stream->end = (size_t)count;
    return true;
}

static bool get(struct stream *stream, char *bytes, size_t count) {
    while (count > 0) {
        if (!fill(stream)) return false;
        size_t part = stream->end - stream->start < count ? stream->end - stream->start : count;
        memcpy(bytes, stream->in + stream->start, part);
        stream->start += part;
        bytes += part;
        count -= part;
    }
    return true;
}

static bool pass(struct stream *stream, size_t count) {
    while (count > 0) {
        if (!fill(stream)) return false;
        size_t part = stream->end - stream->start < count ? stream->end - stream->start : count;
        if (!put(stream, stream->in + stream->start, part)) return false;
        stream->start += part;
        count -= part;
    }
    return true;
}

static uint32_t number(const char *bytes) {
    const unsigned char *b = (const unsigned char *)bytes;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static bool put_head(struct stream *stream, char type, size_t body) {
    uint32_t length = (uint32_t)body + 4;
    char head[5] = {type, (char)(length >> 24), (char)(length >> 16), (char)(length >> 8), (char)length};
    return put(stream, head, sizeof head);
}

/* Whether the next COMMIT of a connection is refused. */
static bool refuses_commit(struct stream *stream) {
    if (stream->is_plain) return false;
    if (refuses_each && stream->asks) return false;
    if (refuses_each) return stream->was_refused = !stream->was_refused;
    return every > 0 && (atomic_fetch_add(&commits, 1) + 1) % every == 0;
}

/* The statement that the server gets instead of one; frees nothing, and returns memory that has to be freed. */
static char *rewritten(struct stream *stream, const char *sql) {
    if (strncmp(sql, "BEGIN", 5) == 0) {
        stream->is_plain = sql[5] != ' ';
        stream->asks = false;
    }
    if (strncmp(sql, "INSERT INTO strata_receipt", 26) == 0 && strstr(sql, "ON CONFLICT") != NULL) stream->asks = true;
    if (strcmp(sql, "COMMIT") == 0) return strdup(refuses_commit(stream) ? refused_commit : sql);
    if (strncmp(sql, "LISTEN", 6) == 0 || strncmp(sql, "NOTIFY", 6) == 0) return strdup(unsupported);
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        if (strstr(sql, missing[i]) != NULL) return strdup(unsupported);
    bool has_locks = strstr(sql, "pg_catalog.pg_advisory_") != NULL || strstr(sql, "pg_catalog.pg_try_advisory_") != NULL;
    if (!has_locks) return strdup(sql);
    if (!is_silent) return strdup(unsupported);
    char *result = malloc(2 * strlen(sql) + 1), *end = result;
    const char old[] = "pg_catalog.pg_", new[] = "strata_silent.pg_";
    while (*sql != '\0') {
        bool is_lock = strncmp(sql, old, sizeof old - 1) == 0
            && (strncmp(sql + sizeof old - 1, "advisory_", 9) == 0 || strncmp(sql + sizeof old - 1, "try_advisory_", 13) == 0);
        if (is_lock) {
            memcpy(end, new, sizeof new - 1);
            end += sizeof new - 1;
            sql += sizeof old - 1;
        } else {
            *end++ = *sql++;
        }
    }
    *end = '\0';
    return result;
}

/* Passes a statement: in a simple query it is the whole message, and when it is prepared, it is after its name. */
static bool pass_statement(struct stream *stream, char type, size_t length) {
    char *body = malloc(length + 1);
    bool is_passed = false;
    if (get(stream, body, length)) {
        body[length] = '\0';
        size_t before = type == 'P' ? strlen(body) + 1 : 0;
        const char *sql = body + before;
        size_t after = before + strlen(sql) + 1;
        char *new = rewritten(stream, sql);
        size_t count = strlen(new) + 1;
        is_passed = put_head(stream, type, before + count + length - after) && put(stream, body, before) && put(stream, new, count)
            && put(stream, body + after, length - after);
        free(new);
    }
    free(body);
    return is_passed;
}

/* Passes an error; that of a refused commit gets the code of a conflict. */
static bool pass_error(struct stream *stream, size_t length) {
    char *body = malloc(length + 1);
    bool is_passed = false;
    if (get(stream, body, length)) {
        body[length] = '\0';
        char *code = NULL;
        bool is_commit = false;
        for (char *field = body; field < body + length && *field != '\0'; field += strlen(field) + 1) {
            if (*field == 'C' && strcmp(field + 1, "55000") == 0) code = field + 1;
            if (*field == 'M' && strcmp(field + 1, "prepared transactions are disabled") == 0) is_commit = true;
        }
        if (code != NULL && is_commit) memcpy(code, "40001", 5);
        is_passed = put_head(stream, 'E', length) && put(stream, body, length);
    }
    free(body);
    return is_passed;
}

static void pass_messages(struct stream *stream, bool is_client) {
    char head[5];
    if (is_client) {
        /* The first message has no type. */
        if (!get(stream, head, 4) || !put(stream, head, 4) || !pass(stream, number(head) - 4)) return;
    }
    while (get(stream, head, 5)) {
        size_t length = number(head + 1) - 4;
        bool is_passed;
        if (is_client && (head[0] == 'Q' || head[0] == 'P'))
            is_passed = pass_statement(stream, head[0], length);
        else if (!is_client && head[0] == 'E')
            is_passed = pass_error(stream, length);
        else
            is_passed = put(stream, head, 5) && pass(stream, length);
        if (!is_passed) return;
    }
}

static void work(struct connection *connection, bool is_client) {
    struct stream *stream = calloc(1, sizeof *stream);
    stream->from = is_client ? connection->client : connection->server;
    stream->to = is_client ? connection->server : connection->client;
    pass_messages(stream, is_client);
    free(stream);
    shutdown(connection->client, SHUT_RDWR);
    shutdown(connection->server, SHUT_RDWR);
    if (atomic_fetch_add(&connection->ends, 1) == 1) {
        close(connection->client);
        close(connection->server);
        free(connection);
    }
}

static void *from_client(void *connection) {
    work(connection, true);
    return NULL;
}

static void *from_server(void *connection) {
    work(connection, false);
    return NULL;
}

static struct sockaddr_un address_of(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    return address;
}

int main(int count, char **arguments) {
    if (count != 5) return 2;
    server_path = arguments[1];
    is_silent = strcmp(arguments[3], "silent") == 0;
    refuses_each = strcmp(arguments[4], "each") == 0;
    every = strtoul(arguments[4], NULL, 10);
    signal(SIGPIPE, SIG_IGN);
    int door = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = address_of(arguments[2]), server = address_of(server_path);
    if (bind(door, (struct sockaddr *)&address, sizeof address) != 0 || listen(door, 64) != 0) return 1;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 1 << 18);
    for (;;) {
        int client = accept(door, NULL, NULL);
        if (client < 0) continue;
        int other = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(other, (struct sockaddr *)&server, sizeof server) != 0) {
            close(client);
            close(other);
            continue;
        }
        struct connection *connection = calloc(1, sizeof *connection);
        connection->client = client;
        connection->server = other;
        pthread_t thread;
        if (pthread_create(&thread, &attributes, from_client, connection) != 0) return 1;
        if (pthread_create(&thread, &attributes, from_server, connection) != 0) return 1;
    }
}
