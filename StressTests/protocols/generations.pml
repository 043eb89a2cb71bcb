/* How a portable PostgreSQL store is migrated in steps, while others read and write, and while processes are taken for dead that are not.
 *
 * A writer shares the lock of the row of the metadata, and then reads there whether a migration was announced. Whoever migrates takes the lease, whoever
 * has it: the time of its holder may be over although the holder goes on later. It announces the migration in the metadata, with a number for the new
 * tables, waits until nobody has the lock, copies row by row, and makes the new tables count. Each of these is one transaction that looks first whether
 * the lease is still there. Another process continues a migration that is announced. One with the old model gives it up, to write again.
 *
 * It has to hold: once the new tables count, they have the rows that were saved, and no others.
 *
 * Variants that have to fail:
 *   NO_WAIT          the migration does not wait for writers that have begun before it was announced
 *   READS_FIRST      a writer reads the metadata before it takes the lock
 *   NO_LEASE         a transaction that copies does not look for the lease
 *   SAME_NUMBER      a migration uses tables again that an earlier one has left
 */

#define ROWS 2
#define MIGRATIONS 2
#define NUMBERS 3

byte lease = 0;                     /* who has it: a migration, or the old program */
byte pending = 0;                   /* the number of the migration that is announced; 0 for none */
byte current = 0;                   /* the number of the tables that count; 0 for the old ones */
byte last = 0;                      /* the highest number so far */
byte writing = 0;                   /* how many transactions share the lock of the metadata */
bool old[ROWS];
bool new[NUMBERS * ROWS];           /* the rows in the tables with the numbers from 1 on */
bool saved[ROWS];                   /* what was saved */

#define TABLE(number, row) new[(number - 1) * ROWS + row]

inline check() {
    d_step {
        assert(current == 0 || (TABLE(current, 0) == saved[0] && TABLE(current, 1) == saved[1]))
    }
}

/* Saves, with the old model: a row is inserted, or deleted. */
proctype OldWriter(byte row) {
    byte times = 0; bool may;
    do
    :: times + row < 2 ->
        times++;
#ifdef READS_FIRST
        may = pending == 0 && current == 0;
        writing++;
#else
        writing++;
        may = pending == 0 && current == 0;
#endif
        if
        :: may -> atomic { old[row] = !old[row]; saved[row] = old[row]; writing-- }
        :: else -> writing--
        fi;
        check()
    :: break
    od
}

/* Saves, with the new model. */
proctype NewWriter(byte row) {
end:
    atomic { current != 0 -> saved[row] = !saved[row]; TABLE(current, row) = saved[row] }
    check()
}

/* Takes the process that migrates for dead, and gives the migration up. */
proctype OldProgram() {
end:
    atomic { pending != 0 -> lease = MIGRATIONS + 1 }
    atomic { if :: lease == MIGRATIONS + 1 -> pending = 0 :: else fi }
}

proctype Migration(byte self) {
    byte number; byte row; byte times = 0;
start:
    times++;
    if
    :: times > 2 -> goto done
    :: atomic { times <= 2 && current != 0 -> goto done }
    :: atomic { times <= 2 && current == 0 -> lease = self }
    fi;
    /* The announcement. */
    atomic {
        if
        :: current != 0 -> goto done
        :: current == 0 && lease != self -> goto start
        :: current == 0 && lease == self && pending != 0 -> number = pending
        :: current == 0 && lease == self && pending == 0 ->
#ifdef SAME_NUMBER
            last = 1;
#else
            if :: last == NUMBERS -> goto done :: else -> last++ fi;
#endif
            number = last; pending = number
        fi
    }
#ifndef NO_WAIT
    if
    :: atomic { lease != self -> goto start }
    :: atomic { lease == self && writing == 0 -> skip }
    fi;
#endif
    row = 0;
    do
    :: row < ROWS ->
        atomic {
#ifndef NO_LEASE
            if :: lease != self -> goto start :: else fi;
#endif
            if :: old[row] -> TABLE(number, row) = true :: else fi;
            row++
        }
        check()
    :: else -> break
    od;
    atomic {
        if
        :: lease == self && pending == number -> current = number; pending = 0
        :: else -> goto start
        fi
    }
    check();
done: skip
}

init {
    atomic {
        run OldWriter(0); run OldWriter(1); run NewWriter(0); run OldProgram();
        run Migration(1); run Migration(2)
    }
}
