/* How a client of a PostgreSQL store finds out what has become of a COMMIT that got no answer.
 *
 * A session writes one row and sends COMMIT. The connection may break at any moment: before the COMMIT arrives, or before
 * the answer does. The server may also crash and start again; then it may lose commits that were not on the disk, and it
 * gives their numbers to other transactions. The client asks over another connection, and repeats the work if the
 * transaction was certainly taken back.
 *
 * It has to hold: if the client says that the row is saved, then it is stored once; if it says that it is not, then it is
 * not stored and never will be.
 *
 * Variants that have to fail:
 *   ROLLED_BACK      a lost answer is taken for a roll-back
 *   SESSION_LIVES    the answer "in progress" is taken for a roll-back, and the session is not ended
 *   NUMBER_PROVES    after a crash the number of the transaction is believed, though another may have it
 */

#define ATTEMPTS 2

mtype = { in_progress, is_committed, is_aborted, yet_to_come };
mtype = { saved, not_saved, in_doubt, undecided };

byte rows = 0;                      /* copies of the row that are stored */
byte next = 1;                      /* the next number of a transaction */
mtype status[6] = yet_to_come;      /* what the server says of each number */
bool own[6];                        /* whether the client's transaction has written with that number */
bool flushed[6];
bool crashed = false;               /* whether the server runs for the second time */
bool sent[ATTEMPTS];                /* COMMIT is on its way */
bool dropped[ATTEMPTS];             /* the connection is broken */
bool over[ATTEMPTS];                /* the session has ended */
byte mine[ATTEMPTS];
mtype answer = undecided;

/* The server's process for an attempt. */
proctype Session(byte attempt) {
    do
    :: atomic {
        /* COMMIT arrives and is carried out, even if nobody waits for the answer any more. */
        sent[attempt] && !over[attempt] ->
        status[mine[attempt]] = is_committed;
        over[attempt] = true;
        rows++;
        if :: flushed[mine[attempt]] = true :: skip fi;
        /* The answer may get lost. */
        if :: dropped[attempt] = true :: skip fi
    }
    :: atomic {
        /* The server notices that the client is gone, before it has read a COMMIT. */
        dropped[attempt] && !over[attempt] -> status[mine[attempt]] = is_aborted; over[attempt] = true
    }
    :: over[attempt] -> break
    od
}

/* The server stops at once and starts again, once. */
proctype Crash() {
    byte number;
    atomic {
        !crashed && next > 1;
        crashed = true;
        number = 1;
        do
        :: number < next ->
            if
            :: status[number] == in_progress -> status[number] = is_aborted
            :: status[number] == is_committed && !flushed[number] ->
                /* The commit was lost; the number is free again. */
                if :: own[number] -> rows-- :: else fi;
                status[number] = yet_to_come;
                own[number] = false
            :: else
            fi;
            number++
        :: else -> break
        od;
        number = 0;
        do
        :: number < ATTEMPTS ->
            if :: mine[number] != 0 -> over[number] = true; dropped[number] = true :: else fi;
            number++
        :: else -> break
        od;
    }
    atomic {
        /* Another program gets the number of a lost transaction. */
        number = 1;
        do
        :: number < next && status[number] != yet_to_come -> number++
        :: else -> break
        od;
        if
        :: number < next -> status[number] = is_committed; flushed[number] = true
        :: else
        fi
    }
}

inline say_saved() { assert(rows == 1); answer = saved }

proctype Client() {
    byte attempt = 0;
    bool is_first_run;
    mtype found;
    do
    :: attempt < ATTEMPTS && answer == undecided ->
        atomic {
            mine[attempt] = next;
            is_first_run = !crashed;
            status[next] = in_progress; own[next] = true; next++;
            run Session(attempt)
        }
        /* The connection may break before COMMIT is sent: then nothing can have been committed. */
        if
        :: atomic { sent[attempt] = !over[attempt] }
        :: atomic { dropped[attempt] = true; attempt++ }
            goto again
        fi;
        if
        :: atomic { over[attempt] && !dropped[attempt] -> say_saved(); goto again }
        :: atomic { dropped[attempt] = true }
        fi;
        /* No answer came. */
#ifdef ROLLED_BACK
        attempt++;
        goto again;
#endif
        do
        :: atomic {
            found = status[mine[attempt]];
            if
            :: found == is_committed ->
                if
#ifndef NUMBER_PROVES
                :: crashed && is_first_run ->
                    /* Only the row shows whose commit it was. */
                    if
                    :: rows > 0 && own[mine[attempt]] -> say_saved()
                    :: else -> answer = in_doubt
                    fi
                :: else -> say_saved()
#else
                :: true -> say_saved()
#endif
                fi;
                break
            :: found == is_aborted || found == yet_to_come -> attempt++; break
            :: found == in_progress ->
#ifdef SESSION_LIVES
                attempt++; break
#else
                /* The session is ended; it may have committed just before that. */
                if
                :: !over[attempt] -> over[attempt] = true; status[mine[attempt]] = is_aborted
                :: else
                fi
#endif
            fi
           }
        od;
again:  skip
    :: else -> break
    od;
    atomic { if :: answer == undecided -> answer = not_saved :: else fi }
    assert(answer != not_saved || rows == 0)
}

/* Nothing more happens after this; what the client said still holds. */
proctype End() {
    timeout ->
    /* A crash after the answer may lose the row, if the server was told not to wait for the disk. */
    assert(answer != not_saved || rows == 0);
    assert(answer != saved || rows <= 1)
}

init { atomic { run Client(); run Crash(); run End() } }
