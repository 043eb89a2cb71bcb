/* How transactions of a PostgreSQL store get their numbers, and how a follower reads and purges the history by them.
 *
 * Writers commit rows without numbers. Whoever wants to read gives numbers to the rows that are committed, under a lock,
 * in a transaction of its own. A follower reads the rows after its token. A purge removes the oldest rows.
 *
 * It has to hold: no two rows get one number, and no row up to the token is missing, unless the follower was told that
 * its token has expired.
 *
 * Variants that have to fail:
 *   NUMBERED_AT_SAVE  a writer takes its number before it commits, so a later number may be committed first
 *   NO_LOCK           two sessions give numbers at the same time
 *   SAME_VIEW         the view of the rows begins before the wait for the lock
 *   NO_BEGINNING      the follower does not look where the history begins
 */

#define WRITERS 3
#define NONE 0

byte number[WRITERS + 1];          /* the committed number of each row; NONE for none */
bool committed[WRITERS + 1];
bool removed[WRITERS + 1];
bool seen[WRITERS + 1];
byte last = 0;                     /* the last number that was given */
byte drawn = 0;                    /* only for NUMBERED_AT_SAVE */
byte token = 0;
bool expired = false;
byte finished = 0;
bool locked = false;

/* A writer; its row becomes visible at once when it commits. */
proctype Writer(byte row) {
    byte mine = NONE;
#ifdef NUMBERED_AT_SAVE
    atomic { drawn++; mine = drawn }
#endif
    atomic {
        number[row] = mine;
        committed[row] = true;
        if :: mine > last -> last = mine :: else fi;
        finished++
    }
}

/* The rows without a number as a statement sees them, and the numbers that it would give to them. */
inline look() {
    d_step {
        base = last;
        row = 1;
        do
        :: row <= WRITERS ->
            given[row] = NONE;
            if
            :: committed[row] && !removed[row] && number[row] == NONE -> base++; given[row] = base
            :: else
            fi;
            row++
        :: else -> break
        od
    }
}

/* The changes of that statement become visible. */
inline write() {
    d_step {
        row = 1;
        do
        :: row <= WRITERS ->
            if :: given[row] != NONE && !removed[row] -> number[row] = given[row] :: else fi;
            row++
        :: else -> break
        od;
        if :: base > last -> last = base :: else fi
    }
}

inline give_numbers() {
#ifdef SAME_VIEW
    look();
#endif
#ifndef NO_LOCK
    atomic { !locked -> locked = true };
#endif
#ifndef SAME_VIEW
    look();
#endif
    /* The client may stop here; then the server takes the transaction back. */
    if
    :: write()
    :: skip
    fi;
#ifndef NO_LOCK
    locked = false
#endif
}

/* Another process that reads the history now and then. */
proctype Reader() {
    byte given[WRITERS + 1];
    byte base; byte row;
    byte rounds = 0;
    do
    :: rounds < 2 -> give_numbers(); rounds++
    :: else -> break
    od
}

/* Removes the rows with the smallest numbers, under the lock. */
proctype Purger() {
    byte row; byte bound;
    atomic { !locked -> locked = true };
    d_step {
        /* Any transaction with a number may be the first one that stays. */
        bound = last;
        row = 1;
        do
        :: row <= WRITERS ->
            if :: number[row] != NONE && number[row] < bound -> removed[row] = true :: else fi;
            row++
        :: else -> break
        od
    };
    locked = false
}

/* Reads on from its token, in one snapshot. */
inline follow() {
    d_step {
        beginning = last + 1;
        row = 1;
        do
        :: row <= WRITERS ->
            if
            :: committed[row] && !removed[row] && number[row] != NONE && number[row] < beginning ->
                beginning = number[row]
            :: else
            fi;
            row++
        :: else -> break
        od;
        if
#ifndef NO_BEGINNING
        :: token < last && token + 1 < beginning -> expired = true
#endif
        :: else ->
            row = 1;
            do
            :: row <= WRITERS ->
                if
                :: committed[row] && !removed[row] && number[row] > token -> seen[row] = true
                :: else
                fi;
                row++
            :: else -> break
            od
        fi;
        token = last
    }
}

proctype Follower() {
    byte given[WRITERS + 1];
    byte base; byte row; byte beginning;
    byte rounds = 0;
    bool isLast;
    do
    :: rounds < 3 ->
        isLast = finished == WRITERS;
        give_numbers();
        follow();
        d_step {
            row = 1;
            do
            :: row <= WRITERS ->
                /* All that is committed with a number up to the token was seen. */
                assert(expired || !committed[row] || number[row] == NONE || number[row] > token || seen[row]);
                row++
            :: else -> break
            od
        }
        rounds++
    :: else -> break
    od
}

/* Numbers are not given twice. */
proctype Watch() {
    byte row; byte other;
    atomic {
        finished == WRITERS ->
        skip
    }
    d_step {
        row = 1;
        do
        :: row <= WRITERS ->
            other = row + 1;
            do
            :: other <= WRITERS ->
                assert(number[row] == NONE || number[row] != number[other]);
                other++
            :: else -> break
            od;
            row++
        :: else -> break
        od
    }
}

init {
    atomic {
        run Writer(1); run Writer(2); run Writer(3);
        run Reader(); run Follower(); run Purger(); run Watch()
    }
}
