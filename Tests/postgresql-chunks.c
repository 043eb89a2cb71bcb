/* libpq 17 hands out several rows of an answer at a time. This is preloaded before an older one, so that it seems to do that as well: it joins
 * rows that come one by one. STRATA_CHUNKS names a file that tells at the end how many results of several rows there were. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHUNK = 12, CONNECTIONS = 64 };

/* A connection that hands out several rows at a time until its statement ends. */
struct state {
    PGconn *connection;
    int size;
    PGresult *next; /* what has come after the last rows */
};

static struct state states[CONNECTIONS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int chunks;

static struct state *state_of(PGconn *connection) {
    struct state *found = NULL;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < CONNECTIONS && found == NULL; i++)
        if (states[i].connection == connection) found = &states[i];
    pthread_mutex_unlock(&mutex);
    return found;
}

static void end(struct state *state) {
    pthread_mutex_lock(&mutex);
    state->connection = NULL;
    pthread_mutex_unlock(&mutex);
}

int PQsetChunkedRowsMode(PGconn *connection, int size) {
    int is_set = 0;
    if (size < 1 || !PQsetSingleRowMode(connection)) return 0;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < CONNECTIONS && !is_set; i++)
        if (states[i].connection == NULL) {
            states[i] = (struct state){connection, size, NULL};
            is_set = 1;
        }
    pthread_mutex_unlock(&mutex);
    return is_set;
}

/* A result of several rows, with the columns of `row`. */
static PGresult *empty(PGconn *connection, const PGresult *row) {
    PGresult *all = PQmakeEmptyPGresult(connection, CHUNK);
    int count = PQnfields(row);
    PGresAttDesc columns[count + 1];
    for (int column = 0; column < count; column++)
        columns[column] = (PGresAttDesc){
            PQfname(row, column), PQftable(row, column), PQftablecol(row, column), PQfformat(row, column),
            PQftype(row, column), PQfsize(row, column), PQfmod(row, column),
        };
    PQsetResultAttrs(all, count, columns);
    return all;
}

static void append(PGresult *all, const PGresult *row) {
    int place = PQntuples(all);
    for (int column = 0; column < PQnfields(row); column++) {
        int is_null = PQgetisnull(row, 0, column);
        PQsetvalue(all, place, column, is_null ? NULL : PQgetvalue(row, 0, column), is_null ? -1 : PQgetlength(row, 0, column));
    }
}

PGresult *PQgetResult(PGconn *connection) {
    static PGresult *(*original)(PGconn *);
    if (original == NULL) original = (PGresult * (*)(PGconn *)) dlsym(RTLD_NEXT, "PQgetResult");
    struct state *state = state_of(connection);
    if (state == NULL) return original(connection);
    PGresult *result = state->next != NULL ? state->next : original(connection);
    state->next = NULL;
    if (PQresultStatus(result) != PGRES_SINGLE_TUPLE) {
        end(state);
        return result;
    }
    PGresult *all = empty(connection, result);
    while (result != NULL && PQresultStatus(result) == PGRES_SINGLE_TUPLE) {
        append(all, result);
        PQclear(result);
        result = PQntuples(all) < state->size ? original(connection) : NULL;
    }
    state->next = result;
    chunks++;
    return all;
}

/* What has come already is there at once. */
int PQisBusy(PGconn *connection) {
    static int (*original)(PGconn *);
    if (original == NULL) original = (int (*)(PGconn *))dlsym(RTLD_NEXT, "PQisBusy");
    struct state *state = state_of(connection);
    return state != NULL && state->next != NULL ? 0 : original(connection);
}

void PQfinish(PGconn *connection) {
    static void (*original)(PGconn *);
    if (original == NULL) original = (void (*)(PGconn *))dlsym(RTLD_NEXT, "PQfinish");
    struct state *state = state_of(connection);
    if (state != NULL) {
        PQclear(state->next);
        end(state);
    }
    original(connection);
}

static __attribute__((destructor)) void tell(void) {
    const char *name = getenv("STRATA_CHUNKS");
    FILE *file = name != NULL && chunks > 0 ? fopen(name, "w") : NULL;
    if (file == NULL) return;
    fprintf(file, "%d\n", chunks);
    fclose(file);
}
