/* How a client of a portable PostgreSQL store finds out what has become of a COMMIT that got no answer, without a number of the transaction and
 * without ending the session.
 *
 * Each attempt of a save writes a receipt with an identifier of its own, in the same transaction as the row. The connection may break at any moment:
 * before the server has read anything, between the receipt and the COMMIT, or before the answer arrives. The client then writes the same receipt itself,
 * as void, over another connection. Identifiers are unique, so that waits for a transaction that has written it, and is refused if that commits.
 * Receipts whose client was not seen for long are removed, after its lease was removed.
 *
 * It has to hold: if the client says that the row is saved, then it is stored once; if it says that it is not, then it is not stored and never will be.
 *
 * Variants that have to fail:
 *   LOOKS_ONLY       the client looks for the receipt, and does not write it
 *   NO_WAIT          the void receipt does not wait for a transaction that is open
 *   NO_LEASE         a receipt that is missing counts as void, although its lease is gone
 */

#define ATTEMPTS 2

mtype = { absent, open, real, void };
mtype = { saved, not_saved, in_doubt, undecided };

byte rows = 0;                      /* copies of the row that are stored */
mtype receipt[ATTEMPTS] = absent;
bool begun[ATTEMPTS];               /* the statements are on their way */
bool over[ATTEMPTS];                /* the session has ended */
bool lost[ATTEMPTS];                /* the connection is broken */
bool lease = true;
mtype answer = undecided;

/* The server's process for an attempt: it reads what was sent, even if nobody waits any more. */
proctype Session(byte attempt) {
    /* The receipt, unless the client is known to be gone. */
    if
    :: atomic {
        receipt[attempt] == absent -> receipt[attempt] = open
       }
    :: atomic { receipt[attempt] != absent -> over[attempt] = true; goto done }
    :: atomic { lost[attempt] -> over[attempt] = true; goto done }
    fi;
    if
    :: atomic {
        receipt[attempt] = real; rows++; over[attempt] = true;
        if :: lost[attempt] = true :: skip fi
       }
    :: atomic { lost[attempt] -> receipt[attempt] = absent; over[attempt] = true }
    fi;
done: skip
}

/* Receipts of clients that were not seen for so long that none of their sessions is left. */
proctype Tidier() {
    byte number = 0;
    atomic {
        (!begun[0] || over[0]) && (!begun[1] || over[1]) && (begun[0] || begun[1]);
        lease = false
    }
    do
    :: atomic { number < ATTEMPTS -> receipt[number] = absent; number++ }
    :: else -> break
    od
}

proctype Client() {
    byte attempt = 0;
    do
    :: attempt < ATTEMPTS && answer == undecided ->
        /* A client whose lease is gone takes another one for what it saves from then on; that is not part of this model. */
        atomic { if :: !lease -> answer = in_doubt; goto next :: else fi }
        atomic { begun[attempt] = true; run Session(attempt) }
        if
        :: atomic { over[attempt] && receipt[attempt] == real && !lost[attempt] -> assert(rows == 1); answer = saved; goto next }
        :: lost[attempt] = true
        fi;
#ifdef LOOKS_ONLY
        atomic {
            if
            :: receipt[attempt] == real -> assert(rows == 1); answer = saved
            :: else -> attempt++
            fi
        }
#else
        atomic {
            /* The receipt is unique, so this waits while the transaction is open. */
#ifndef NO_WAIT
            receipt[attempt] != open;
#endif
            if
            :: receipt[attempt] == real -> assert(rows == 1); answer = saved
            :: else ->
                if :: receipt[attempt] == absent -> receipt[attempt] = void :: else fi;
#ifdef NO_LEASE
                attempt++
#else
                if
                :: lease -> attempt++
                :: else -> answer = in_doubt
                fi
#endif
            fi
        }
#endif
next:   skip
    :: else -> break
    od;
    atomic { if :: answer == undecided -> answer = not_saved :: else fi }
    assert(answer != not_saved || rows == 0)
}

/* Nothing more happens after this; what the client said still holds. */
proctype End() {
    timeout ->
    assert(answer != not_saved || rows == 0);
    assert(answer != saved || rows == 1)
}

init { atomic { run Client(); run Tidier(); run End() } }
