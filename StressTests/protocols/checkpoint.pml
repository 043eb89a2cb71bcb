/* How processes that share a SQLite file write its log, copy the log into the file, and read one version meanwhile.
 *
 * A commit appends frames to the log, or starts the log over if all of it is in the file and nobody reads from it. A
 * checkpoint copies frames into the file. A reader, or a pinned context, sees the file and the frames up to its mark.
 * SQLite does all this. Versions 3.7.0 to 3.51.2 read how long the log is before a checkpoint has its lock, and this is
 * how the model does it. So a checkpoint of the library holds the lock of writers as well, or it copies beside writers
 * while another connection reads. That connection has a mark, so that the log does not start over. Or it reads the file
 * alone, so that nothing is copied.
 *
 * It has to hold: a reader sees the newest commit before it began, as often as it looks, and a new reader sees the last one.
 *
 * Variants that have to fail:
 *   NO_WRITE_LOCK   a checkpoint does not hold the lock of writers
 *   NO_MARK         nobody reads while a checkpoint copies beside writers
 *   OVER_PINS       the log starts over although somebody reads from it
 *   PAST_MARKS      a checkpoint copies frames that are newer than the mark of a reader
 */

#define FRAMES 3
#define COMMITS 3
#define READERS 1

/* The log: which of two pages each frame has, and its content. */
byte page[FRAMES + 1];
byte content[FRAMES + 1];
byte length = 0;
byte copied = 0;
/* The file. */
byte file[2];
/* What the last commit has written; only the checks look at it. */
byte newest[2];

bool write_lock = false;
bool checkpoint_lock = false;
/* The mark of each reader; 0 if it reads the file alone. */
byte mark[READERS];
bool reads[READERS];
bool reads_file[READERS];

/* The connection that reads while a checkpoint copies beside writers. */
byte guard_mark;
bool guard_reads = false;
bool guard_reads_file = false;

/* A reader, or a pinned context, needs frames of the log; or it reads the file alone, which then stays as it is. */
#define LOG_IS_READ  (reads[0] && !reads_file[0] || guard_reads && !guard_reads_file)
#define FILE_IS_READ (reads[0] && reads_file[0] || guard_reads && guard_reads_file)

proctype Writer() {
    byte commits = 0;
    do
    :: commits < COMMITS ->
        atomic { !write_lock -> write_lock = true };
        atomic {
            if
#ifdef OVER_PINS
            :: length > 0 && copied == length -> length = 0; copied = 0
#else
            :: length > 0 && copied == length && !LOG_IS_READ -> length = 0; copied = 0
#endif
            :: else
            fi
        };
        atomic {
            if
            :: length < FRAMES ->
                length++;
                if :: page[length] = 0 :: page[length] = 1 fi;
                content[length] = commits + 1;
                newest[page[length]] = commits + 1
            :: else
            fi;
            commits++;
            write_lock = false
        }
    :: else -> break
    od
}

proctype Checkpoint() {
    byte end; byte next; byte rounds = 0;
    do
    :: rounds < 2 ->
#ifndef NO_WRITE_LOCK
        atomic { !write_lock -> write_lock = true };
#endif
        end = length;
        atomic { !checkpoint_lock -> checkpoint_lock = true };
#ifndef PAST_MARKS
        d_step {
            next = 0;
            do
            :: next < READERS ->
                if :: reads[next] && !reads_file[next] && mark[next] < end -> end = mark[next] :: else fi;
                next++
            :: else -> break
            od
        };
#endif
        /* Nobody may read the file alone while it changes. */
        if
        :: atomic { !FILE_IS_READ && copied < end ->
            next = copied + 1;
            do
            :: next <= end -> file[page[next]] = content[next]; next++
            :: else -> break
            od
           };
           copied = end
        :: else
        fi;
        checkpoint_lock = false;
#ifndef NO_WRITE_LOCK
        write_lock = false;
#endif
        rounds++
    :: else -> break
    od
}

/* It copies while others write. */
proctype Copier() {
    byte end; byte next; byte rounds = 0;
    do
    :: rounds < 2 ->
#ifndef NO_MARK
        d_step { guard_mark = length; guard_reads_file = copied == length; guard_reads = true };
#endif
        end = length;
        atomic { !checkpoint_lock -> checkpoint_lock = true };
        d_step {
            if :: reads[0] && !reads_file[0] && mark[0] < end -> end = mark[0] :: else fi;
            if :: guard_reads && !guard_reads_file && guard_mark < end -> end = guard_mark :: else fi
        };
        if
        :: atomic { !FILE_IS_READ && copied < end ->
            next = copied + 1;
            do
            :: next <= end -> file[page[next]] = content[next]; next++
            :: else -> break
            od
           };
           copied = end
        :: else
        fi;
        checkpoint_lock = false;
        d_step { guard_reads = false; guard_reads_file = false; guard_mark = 0 };
        rounds++
    :: else -> break
    od
}

inline look(which, value) {
    d_step {
        value = file[which];
        place = 1;
        do
        :: place <= mark[self] && !reads_file[self] ->
            if :: page[place] == which -> value = content[place] :: else fi;
            place++
        :: else -> break
        od
    }
}

proctype Reader(byte self) {
    byte rounds = 0; byte place; byte value;
    byte expected[2];
    do
    :: rounds < 2 ->
        d_step {
            reads[self] = true;
            mark[self] = length;
            reads_file[self] = copied == length;
            expected[0] = newest[0];
            expected[1] = newest[1]
        };
        look(0, value);
        assert(value == expected[0]);
        look(1, value);
        assert(value == expected[1]);
        /* It is pinned, and looks again. */
        look(0, value);
        assert(value == expected[0]);
        atomic { reads[self] = false; reads_file[self] = false; mark[self] = 0 };
        rounds++
    :: else -> break
    od
}

init { atomic { run Writer(); run Checkpoint(); run Copier(); run Reader(0) } }
