/* How a migration of a PostgreSQL store meets sessions that have the store open with the old model.
 *
 * A session that begins reads which version the store has, and joins those that have it open, in one statement. So it
 * holds the table of the metadata from the reading to the joining. Then it reads and saves in transactions of its own.
 * A migration locks all tables, changes them, ends all sessions that have joined, and commits. Another process may want
 * the same migration, or open the store with the new model.
 *
 * It has to hold: nothing is written by the rules of the old model once the tables are those of the new one, the
 * migration is done once, and a session of the new model never meets old tables.
 *
 * Variants that have to fail:
 *   JOINS_LATER    a session joins in a statement after the one that reads the version
 *   ENDS_FIRST     the migration ends the sessions before it locks the tables
 *   NO_SECOND_LOOK a migration that has waited for another one does not read the version again
 */

#define SESSIONS 2
#define MIGRATIONS 2

byte version = 1;                  /* the committed version of the tables and of the metadata */
byte migrated = 0;                 /* how often the tables were changed */
byte shape_lock = 0;               /* taken by whoever makes or migrates a store */
byte exclusive = 0;                /* the migration that has all tables; 0 for none */
byte shared = 0;                   /* how many transactions use the tables */
bool joined[SESSIONS + 1];
bool ended[SESSIONS + 1];

/* The server ends a session: what it has not committed is taken back, and its locks are free. */
inline end_sessions() {
    d_step {
        other = 1;
        do
        :: other <= SESSIONS ->
            if :: joined[other] -> ended[other] = true; joined[other] = false :: else fi;
            other++
        :: else -> break
        od
    }
}

proctype Session(byte self) {
    byte found; byte saves = 0;
    /* One statement waits for the table, reads, and joins. */
    atomic { exclusive == 0 -> shared++ };
    found = version;
#ifdef JOINS_LATER
    shared--;
    joined[self] = true;
#else
    joined[self] = true;
    shared--;
#endif
    /* A store of another version is refused. */
    do
    :: found == 1 && saves < 2 ->
        /* A transaction of the old model. */
        if
        :: atomic { ended[self] -> break }
        :: atomic { exclusive == 0 && !ended[self] -> shared++ }
        fi;
        if
        :: ended[self] -> shared--; break
        :: atomic { !ended[self] -> assert(version == 1); saves++; shared-- }
        fi
    :: else -> break
    od
}

proctype Migration(byte self) {
    byte found; byte other;
    /* The process has found the old version, and asks for the migration. */
    found = version;
    if
    :: found == 1 ->
        atomic { shape_lock == 0 -> shape_lock = self };
#ifndef NO_SECOND_LOOK
        found = version;
#endif
        if
        :: found == 1 ->
#ifdef ENDS_FIRST
            end_sessions();
#endif
            atomic { exclusive == 0 && shared == 0 -> exclusive = self };
#ifndef ENDS_FIRST
            end_sessions();
#endif
            /* COMMIT makes all of it visible, or nothing of it if the process dies. */
            if
            :: atomic { migrated++; version = 2; assert(migrated == 1); exclusive = 0; shape_lock = 0 }
            :: atomic { exclusive = 0; shape_lock = 0 }
            fi
        :: else -> shape_lock = 0
        fi
    :: else
    fi
}

/* A process with the new model; it waits for a migration that is under way, and sees all of it. */
proctype New() {
    byte tables; byte metadata;
    atomic { exclusive == 0 -> shared++ };
    metadata = version;
    tables = version;
    assert(metadata == tables);
    shared--
}

init { atomic { run Session(1); run Session(2); run Migration(1); run Migration(2); run New() } }
