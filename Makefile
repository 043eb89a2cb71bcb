# The commands for working with Strata. `make demo` and `make test` need nothing but Swift and, for the first run, the network.

# A pipe fails with any of its parts.
SHELL = bash
.SHELLFLAGS = -o pipefail -c

SWIFT ?= swift
SOURCES = Sources Tests StressTests Package.swift

# The example: more options in DEMO_ARGS, as in `make demo DEMO_ARGS="--search sqlite --limit 10"`.
DEMO_CONFIGURATION ?= release
DEMO_STORE ?= .build/debian-index.sqlite
DEMO_ARGS ?=
# The job queue: as in `make demo-jobs JOBS_ARGS="--workers 5 --seconds 30"`.
JOBS_FOLDER ?= .build/job-queue
JOBS_ARGS ?= --workers 3 --seconds 10
# The server: as in `make demo-server SERVER_ARGS="--connections 16 --seconds 60"`.
SERVER_STORE ?= .build/storefront.sqlite
SERVER_ARGS ?=
BENCH_ARGS ?=
# The commit with which `make bench-compare` compares the working tree: as in `make bench-compare BASE=main COMPARE_ARGS="--only W2,W6"`.
BASE ?= HEAD
COMPARE_ARGS ?=
STRESS_ARGS ?=
HOURS ?= 1
TEST_ARGS ?=
# How often `make test-repeat` runs which suites; REPEAT_SEED is the seed of its first run, random if there is none. The suites are picked by
# their names, as those of `make test-postgresql` are: `--filter` and `--skip` of Swift 6.3 take regular expressions for the names of tests, and no
# tags. (The library can filter by tags, but no option of its command line leads there.)
REPEAT_COUNT ?= 50
REPEAT_FILTER ?= Tree|Merg|Conflict|LostUpdate|Staleness|Unreadable|SaveVariant|ChangeSequence|DeletedTarget|Straggler|$\
	Neighbour|(Container|Fetch|Reading|Store)Statement|AsynchronousFetch|AwaitedFetch|BackgroundReading|BackgroundPrefetch|$\
	ChildFetch|RowBatches|Executor|\.QueueTests|Deadlock|Perform|Confinement|SlowOperation|\.SavingTests|ObjectLife|Notification|$\
	Undo|Overtak|ChildChange|Stranger|RereadRow|Revived|Trumped|Identity|FaultTests|Hook|Deletion|Cascade|\.ValidationTests|$\
	ChangeTracking|\.RelationshipTests|Transformable|\.MisuseTests|Generation|PinnedReading|two processes
REPEAT_SEED ?=

# The commit that reports of `stress` name.
export STRATA_COMMIT := $(shell git describe --always --dirty 2>/dev/null || echo unknown)

# The parts of `make test-postgresql`.
POSTGRESQL_PARTS = $(addprefix test-postgresql-,context-a-to-m context-n-to-z store-a-to-g store-h-to-z stepped others)

.DEFAULT_GOAL := help
.PHONY: help demo demo-jobs demo-jobs-postgresql demo-migration demo-server test test-of test-fault-points schedules schedule-faults test-small-sizes test-repeat \
	test-postgresql $(POSTGRESQL_PARTS) test-postgresql-portable test-postgresql-portable-all test-citus bench bench-northwind bench-compare check-bench-compare \
	stress stress-quick stress-postgresql stress-red stress-tsan stress-asan soak mutants mutants-sample check-mutants tsan lint format layers \
	check-layers check-folders check-stores check-protocols check-models check-client check-without-postgresql docs docs-preview check-docs check-api check-pages \
	system-packages postgresql-packages python valgrind spin

help:
	@echo "Examples"
	@echo "  make demo                     import this machine's Debian package index and answer questions about it; DEMO_ARGS=\"--search sqlite\""
	@echo "  make demo-jobs                let several processes share a queue of jobs, kill one, and check that none is lost or done twice; JOBS_ARGS"
	@echo "  make demo-jobs-postgresql     the same with processes that share a PostgreSQL database only, whose sessions end half-way"
	@echo "  make demo-migration           open an index of an older model, kill that half-way, and open it again; DEMO_ARGS"
	@echo "  make demo-server              order from an HTTP server on several connections, kill its worker, check that all adds up, and draw the latency; SERVER_ARGS"
	@echo
	@echo "Tests"
	@echo "  make test                     run the tests; TEST_ARGS=\"--filter Merge\""
	@echo "  make test-of                  build and run the tests of TARGET=name, or of several with commas between, without the others"
	@echo "  make test-repeat              run the tests of contexts REPEAT_COUNT times (50), each time with other random numbers; stop at a failure"
	@echo "  make test-fault-points        run the tests that need a build with fault points, or with the scheduler of threads"
	@echo "  make schedules                run small programs of several threads in many chosen orders; SCHEDULE_ARGS=\"--seed random --schedules 1000\""
	@echo "  make schedule-faults          try faults of order with these programs, a minute each; FAULT_ARGS=\"--only 3,101-112\""
	@echo "  make test-small-sizes         run the tests on SQLite with portions, windows and caches of one to three"
	@echo "  make test-postgresql          run the tests for all stores, and those of the store for PostgreSQL, on private servers"
	@echo "  make test-postgresql-PART     one part of them: context-a-to-m, context-n-to-z, store-a-to-g, store-h-to-z, stepped, others"
	@echo "  make test-citus URL=…         the steps of a trial on a server whose tables are on several nodes, or on any other; skipped without URL"
	@echo "  make tsan                     run the tests under the thread sanitizer"
	@echo "  make bench                    compare with the raw SQLite C API, or with libpq; BENCH_ARGS=\"--only W2 --json results.jsonl\""
	@echo "  make bench-northwind          read all orders of Northwind in several forms, in turns, and print a table for a page; BENCH_ARGS"
	@echo "  make bench-compare            compare the speed with that of commit BASE=HEAD, in turns; COMPARE_ARGS=\"--instructions\" counts those"
	@echo
	@echo "Stress (Docs/Reliability.md; options for it in STRESS_ARGS)"
	@echo "  make stress                   try to make the framework lose, tear, deadlock, leak or crash, from two seeds, for about 5 minutes"
	@echo "  make stress-quick             twelve scenarios for two seconds each, in a debug build without fault points"
	@echo "  make test-postgresql-portable portable stores, behind a proxy that refuses what many engines of PostgreSQL's wire lack"
	@echo "  make test-postgresql-portable-all  the same with all suites that a portable store has to pass, and without stress"
	@echo "  make stress-postgresql        the scenarios that know PostgreSQL, on a private server, for SECONDS=5 each"
	@echo "  make stress-red               break something on purpose, once for each sabotage: each must be caught"
	@echo "  make stress-tsan              run the scenarios that make sense under the thread sanitizer"
	@echo "  make stress-asan              run the scenarios that make sense under the address sanitizer"
	@echo "  make soak                     run steady load for HOURS=1"
	@echo "  make mutants                  break the library in small ways from a list, and see which tests and scenarios notice; MUTANTS=3,7 picks"
	@echo "  make mutants-sample           the same with N=200 faults that are drawn at random over the lines of code, from SEED=s"
	@echo "  make check-mutants            check that the faults of the list fit the sources, and the tool that draws others"
	@echo
	@echo "Checks and sources"
	@echo "  make lint                     check the form of the sources"
	@echo "  make format                   put the sources into that form"
	@echo "  make layers                   draw the targets of Package.swift in Docs/Architecture.md"
	@echo "  make check-layers             check that drawing, and that files import only what their target names"
	@echo "  make check-folders            check that each folder of CoreDataEssentials which knows a higher one is listed with the reason"
	@echo "  make check-stores             check that tests which run on SQLite alone are listed with the reason"
	@echo "  make check-protocols          search all states of six models of protocols, and of their faulty variants, with spin"
	@echo "  make check-bench-compare      check the tool that compares two commits"
	@echo "  make check-models             compile the Swift that is written of models, and compare hashes and tables with those of their files"
	@echo "  make check-client             build a program and a library that depend on this package, in a release build, and check what they print, the time of the build and the size"
	@echo "  make check-without-postgresql build everything but the tests as on a machine without libpq"
	@echo
	@echo "Documentation"
	@echo "  make check-pages              check that numbers of statements lead to Docs/Semantics.md, and that this list has all targets"
	@echo "  make docs                     make the documentation as a site"
	@echo "  make docs-preview             make the site, and show it at http://localhost:8000"
	@echo "  make check-docs               make the site, and look in Chromium for what some of its pages say"
	@echo "  make check-api                compare the public declarations with those of the last version; make the site for that"
	@echo
	@echo "Packages of the system (the others call these; they install what is missing)"
	@echo "  make system-packages          SQLite's header and pkg-config"
	@echo "  make postgresql-packages      libpq's header, PostgreSQL's programs and openssl"
	@echo "  make python                   Python 3"
	@echo "  make valgrind                 Valgrind, whose callgrind counts instructions"
	@echo "  make spin                     spin, which searches the states of a model, and a C compiler"

demo: system-packages
	$(SWIFT) run -c $(DEMO_CONFIGURATION) debian-index --store $(DEMO_STORE) $(DEMO_ARGS)

demo-jobs: system-packages
	$(SWIFT) run -c $(DEMO_CONFIGURATION) job-queue demo --folder $(JOBS_FOLDER) $(JOBS_ARGS)

# The same with processes that share nothing but a database, whose sessions the server ends half-way.
JOBS_PROGRAM = .build/$(DEMO_CONFIGURATION)/job-queue
demo-jobs-postgresql: system-packages postgresql-packages
	STRATA_POSTGRESQL=1 $(SWIFT) build -c $(DEMO_CONFIGURATION) --product job-queue
	Tests/postgresql-server.sh run Tests/jobs-on-postgresql.sh $(JOBS_PROGRAM) $(JOBS_FOLDER)-postgresql $(JOBS_ARGS)

demo-migration: system-packages
	$(SWIFT) run -c $(DEMO_CONFIGURATION) debian-index --demo-migration --store .build/old-index.sqlite $(DEMO_ARGS)

demo-server: system-packages
	$(SWIFT) run -c $(DEMO_CONFIGURATION) storefront-server demo --store $(SERVER_STORE) $(SERVER_ARGS)

# The targets whose suites script several processes, or have to end by a clock. They run one by one, and first: among
# thousands of tests at once a step would wait for minutes.
STEPPED_TARGETS = ^(CoreDataJobsTests|FeaturePairsTests|StrataLocksTests|StrataSQLiteTests|CoreDataSteppedTests|DebianIndexTests|JobQueueTests|StorefrontTests)\.
# The largest target runs by itself: all tests of a run begin at once, and each then waits for its turns.
CONTEXT_TARGET = ^CoreDataTests\.
# Ends runs that stand still, and lists the failures again at the end; the script explains how.
TESTED = Tests/tested.sh .build/test.log

# The programs that suites start are built as well, as those of an earlier build may not fit the sources any more. They come after the tests,
# whose build has all of their modules, so that both processors have something to do all the time.
test: system-packages
	@mkdir -p .build
	$(SWIFT) build --product StrataPackageTests
	$(SWIFT) build --product debian-index
	$(SWIFT) build --product job-queue
	$(SWIFT) build --product storefront-server
	$(SWIFT) build --product strata
	$(TESTED) $(SWIFT) test --skip-build --no-parallel --filter '$(STEPPED_TARGETS)'
	$(TESTED) $(SWIFT) test --skip-build --skip '$(STEPPED_TARGETS)' --skip '$(CONTEXT_TARGET)' $(TEST_ARGS)
	$(TESTED) $(SWIFT) test --skip-build --skip '^(?!CoreDataTests\.)' $(TEST_ARGS)

COMMA = ,
# One target's tests without the others: make test-of TARGET=StrataSQLTests, or several with commas between.
test-of: system-packages
	@for name in $(if $(TARGET),$(subst $(COMMA), ,$(TARGET)),TARGET=); do \
		[ -d "Tests/$$name" ] || { echo "There are no tests called $$name." >&2; exit 1; }; \
	done
	@mkdir -p .build
	STRATA_TESTS='$(TARGET)' $(SWIFT) build --product StrataPackageTests
	STRATA_TESTS='$(TARGET)' $(TESTED) $(SWIFT) test --skip-build $(TEST_ARGS)

# The suites for all stores run on PostgreSQL as well, on servers that this starts for the purpose: on a Unix socket in a
# temporary folder, as an ordinary user. Random tests run two seeds, as each look at a relationship is a round trip. Suites that are about SQLite's files, or
# about several kinds of stores at once, are left out.
#
# In each of these programs one test runs after the other. Tests often wait for a private server or for the end of a process, and each wait would
# take one of the few threads that tests share. So there are several programs at a time instead, with a server each.
POSTGRESQL_OTHER_TESTS ?= ^(StrataPostgreSQLTests|StrataSQLTests)\.|$\
	^CoreDataJobsTests\.|^CoreDataOperationsTests\.(Instrument|Statistics|Check|Closing|Limit)Tests|^ModelClassesTests\.ClassModelTests/objects|$\
	^FeaturePairsTests\.|^SwiftDataTests\.(FetchDescriptor|ModelContext|ModelHistory|ObjectLife|Observation|PostgreSQLConfiguration|$\
	ResultsObserver|Undo)Tests
POSTGRESQL_STEPPED_TESTS ?= ^CoreDataSteppedTests\.|^StorefrontTests\..*PostgreSQL
POSTGRESQL_SKIPPED = $(shell grep -v '^\#' Tests/postgresql-skipped.txt | paste -sd '|')
# `swift test` runs one at a time.
POSTGRESQL_TESTED = STRATA_POSTGRESQL=1 STRATA_SEEDS=1-2 Tests/tested.sh .build/$@.log Tests/postgresql-server.sh run $\
	$$($(SWIFT) build --show-bin-path)/StrataPackageTests.xctest --testing-library swift-testing --no-parallel --skip '$(POSTGRESQL_SKIPPED)'

test-postgresql: system-packages postgresql-packages
	STRATA_POSTGRESQL=1 $(SWIFT) build --product StrataPackageTests
	@$(MAKE) --no-print-directory --jobs 3 --output-sync=target $(POSTGRESQL_PARTS)

# The two large targets are split: half of the suites at a time, by their names.
test-postgresql-context-a-to-m:
	$(POSTGRESQL_TESTED) --filter '^CoreDataTests\.[A-M]'
test-postgresql-context-n-to-z:
	$(POSTGRESQL_TESTED) --filter '^CoreDataTests\.[^A-M]'
test-postgresql-store-a-to-g:
	$(POSTGRESQL_TESTED) --filter '^StrataPostgreSQLStoreTests\.[A-G]'
test-postgresql-store-h-to-z:
	$(POSTGRESQL_TESTED) --filter '^StrataPostgreSQLStoreTests\.[^A-G]'
test-postgresql-stepped:
	$(POSTGRESQL_TESTED) --filter '$(POSTGRESQL_STEPPED_TESTS)'
test-postgresql-others:
	$(POSTGRESQL_TESTED) --filter '$(POSTGRESQL_OTHER_TESTS)'

# Stores behind a proxy that refuses what many engines of PostgreSQL's wire lack: the suites with advisory locks that lock nothing, `stress` also
# without any. portable-skipped.txt has what is left out, and why.
#
# For the suites the proxy answers each transaction once by 40001, so that the verdict does not depend on which test a count of COMMITs reaches. The
# tests of portable-commits.txt run with a proxy that carries out all of them. For `stress` it refuses one COMMIT in seven. The stores of the first
# run of suites and of the first run of `stress` have scattered keys.
PORTABLE_SKIPPED = $(shell cat Tests/postgresql-skipped.txt Tests/portable-skipped.txt | grep -v '^\#' | paste -sd '|')
PORTABLE_COMMITS = $(shell grep -v '^\#' Tests/portable-commits.txt | paste -sd '|')
PORTABLE_TESTS ?= ^CoreDataJobsTests\.JobLimitTests|^StrataPostgreSQLStoreTests\.(Fault|RepeatedSave|Aggregate|BatchAtOnce)Tests|$\
	^FeaturePairsTests\.|^CoreDataSteppedTests\.(BatchStreaming|Follower|FollowerPlace|HistoryConsumer|RemoteChange|RowLock|RowLockWindow|$\
	SharingProcesses)Tests|^CoreDataOperationsTests\.CheckTests|^CoreDataTests\.(AutomaticMerge|Batch[A-Z][a-z]*|Claim|Conflict|ConstraintConflict|$\
	DerivedAttribute|History(Fetch|Merging|Picking|Recording|Token)|Identity|LostUpdate|ManyConflicts|MergePolicy|Merge|Metadata|OthersCommits|$\
	OvertakenDeletion|PinnedReading|Relationship|RevivedRow|SaveVariant|Saving|TrumpedSave|UnreadableStore)Tests
# The suites that any store has to pass, and those of the store that are not about the other form.
PORTABLE_ALL = ^CoreDataTests\.|$(POSTGRESQL_STEPPED_TESTS)|^StrataSQLTests\.|$(POSTGRESQL_OTHER_TESTS)|$\
	^StrataPostgreSQLStoreTests\.(Fault|RepeatedSave|Aggregate|BatchAtOnce)Tests
PORTABLE_TESTED = STRATA_PORTABLE=silent STRATA_POSTGRESQL=1 STRATA_SEEDS=1-2 Tests/tested.sh .build/$@.log Tests/postgresql-server.sh run $\
	$$($(SWIFT) build --show-bin-path)/StrataPackageTests.xctest --testing-library swift-testing --no-parallel
PORTABLE_STRESS = Tests/postgresql-server.sh run .build/debug/stress bank append anomalies processes crash --store postgresql --seed random $\
	--seconds $(SECONDS) --floor 1 $(STRESS_ARGS)
PORTABLE_EACH = STRATA_PORTABLE_EVERY=each $(PORTABLE_TESTED) --skip '$(PORTABLE_SKIPPED)|$(PORTABLE_COMMITS)'
test-postgresql-portable: system-packages postgresql-packages
	STRATA_POSTGRESQL=1 $(SWIFT) build --product StrataPackageTests
	STRATA_POSTGRESQL=1 $(SWIFT) build --product stress
	STRATA_SCATTERED_KEYS=1 $(PORTABLE_EACH) --filter '$(PORTABLE_TESTS)'
	STRATA_PORTABLE_EVERY=0 $(PORTABLE_TESTED) --skip '$(PORTABLE_SKIPPED)' --filter '^(?=.*($(PORTABLE_COMMITS)))($(PORTABLE_ALL))'
	STRATA_SCATTERED_KEYS=1 STRATA_PORTABLE=missing $(PORTABLE_STRESS)
	STRATA_PORTABLE=silent $(PORTABLE_STRESS)

# All suites that a portable store has to pass, each transaction of which is refused once.
test-postgresql-portable-all: system-packages postgresql-packages
	STRATA_POSTGRESQL=1 $(SWIFT) build --product StrataPackageTests
	$(PORTABLE_EACH) --filter '$(PORTABLE_ALL)'

# The steps of a trial on the server of URL, whose tables may be on several nodes: made for a Citus whose role has `citus.enable_schema_based_sharding`
# on. On a plain PostgreSQL they pass too. The schema of the trial is removed at the end.
test-citus: system-packages
	@if [ -z '$(URL)' ]; then echo "The trial is skipped: name a server, as in make test-citus URL='postgresql://db.example.org/strata?user=guide'"; else \
		STRATA_POSTGRESQL=1 $(SWIFT) build --product StrataPackageTests && \
		STRATA_POSTGRESQL=1 STRATA_TEST_POSTGRESQL='$(URL)' $(SWIFT) test --skip-build --filter '^StrataPostgreSQLStoreTests\.TrialTests'; fi

# Builds everything except the tests, as it builds without libpq, in a separate folder.
WITHOUT_POSTGRESQL = .build/without-postgresql
check-without-postgresql: system-packages
	STRATA_POSTGRESQL=0 $(SWIFT) build --scratch-path $(WITHOUT_POSTGRESQL)
	@for program in strata stress bench job-queue storefront-server; do \
		libraries=$$(ldd $(WITHOUT_POSTGRESQL)/debug/$$program) || exit 1; \
		case "$$libraries" in *libpq*) echo "$$program needs libpq." >&2; exit 1;; esac; \
	done
	$(WITHOUT_POSTGRESQL)/debug/stress bank --seconds 1 --floor 1

# A separate build, in which a scheduler decides which thread goes on, and which has fault points as well.
SCHEDULES = --traits FaultPoints,Schedules --scratch-path .build/fault-points
# The compiler's name for the handler of the fault points. Only builds with fault points contain it.
FAULT_POINT_SYMBOL = 11StrataLocks10FaultPointV7handler33_
SCHEDULER_SYMBOL = 11StrataLocks11ScheduleRun
# The points themselves, in a build of the lowest target alone.
test-fault-points: system-packages
	@mkdir -p .build
	STRATA_TESTS=StrataLocksTests $(SWIFT) build --product StrataPackageTests $(SCHEDULES)
	@grep -rq --include='*.o' $(FAULT_POINT_SYMBOL) .build/fault-points/debug/StrataLocks.build/ \
		|| { echo "The handler of the fault points has another name than \`make stress-quick\` looks for." >&2; exit 1; }
	@grep -rq --include='*.o' $(SCHEDULER_SYMBOL) .build/fault-points/debug/StrataLocks.build/ \
		|| { echo "The scheduler has another name than \`make stress-quick\` looks for." >&2; exit 1; }
	STRATA_TESTS=StrataLocksTests $(TESTED) $(SWIFT) test --skip-build $(SCHEDULES)

# The first seed is fixed, and the second one is drawn and printed. The last lines check the scheduler itself: it has to find what happens without a guard.
SCHEDULE_ARGS ?=
schedules: system-packages
	@! grep -rnE --include='*.swift' '\bAtomic[(<]' Sources --exclude-dir=Examples --exclude-dir=StrataLocks --exclude=Row.swift \
		|| { echo "The scheduler does not see an atomic: use AtomicCell." >&2; exit 1; }
	STRATA_TESTS=StrataLocksTests $(SWIFT) build --product schedules $(SCHEDULES)
	.build/fault-points/debug/schedules --seed 1 --seconds 4 $(SCHEDULE_ARGS)
	.build/fault-points/debug/schedules encounters
	.build/fault-points/debug/schedules --seed random --schedules 100 --seconds 2 $(SCHEDULE_ARGS)
	.build/fault-points/debug/schedules --off no-revival-check
	.build/fault-points/debug/schedules --off no-invalidation

# A copy of the sources with faults in which only an order is wrong: which of them do the programs find?
FAULT_ARGS ?=
schedule-faults: system-packages python
	python3 -B StressTests/schedules/try-faults $(FAULT_ARGS)

# All tests on SQLite and in memory with portions, windows and caches of one to three, so that they cross the boundaries of all of them.
test-small-sizes: system-packages
	@mkdir -p .build
	$(SWIFT) build --product StrataPackageTests --traits SmallSizes --scratch-path .build/small-sizes
	$(TESTED) $(SWIFT) test --skip-build --traits SmallSizes --scratch-path .build/small-sizes \
		--skip '$(STEPPED_TARGETS)' $(TEST_ARGS)

# Stops at the first run that fails, with its output and its seed: that repeats the random numbers, not the threads' timing.
test-repeat: system-packages
	$(SWIFT) build --build-tests
	@seed=$(REPEAT_SEED); log=.build/test-repeat.log; \
	for run in $$(seq $(REPEAT_COUNT)); do \
		seed=$${seed:-$$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}; \
		STRATA_SEEDS=$$seed-$$((seed + 3)) $(SWIFT) test --skip-build --filter '$(REPEAT_FILTER)' > $$log 2>&1 || { \
			cat $$log; \
			echo "Run $$run failed. Again: make test-repeat REPEAT_COUNT=1 REPEAT_SEED=$$seed" >&2; exit 1; }; \
		echo "run $$run, seed $$seed: $$(grep -E 'Test run with' $$log | tail -1)"; \
		seed=; \
	done

bench: system-packages
	$(SWIFT) run -c release bench $(BENCH_ARGS)

bench-northwind: system-packages
	$(SWIFT) run -c release bench --northwind $(BENCH_ARGS)

# Builds two commits, in .build/bench-compare and here, and lets both programs do each workload in turns: some minutes after the builds.
# With --instructions it ends with 1 if a workload takes more than 10 % more of them than in BASE.
bench-compare: system-packages python $(if $(findstring --instructions,$(COMPARE_ARGS)),valgrind)
	SWIFT='$(SWIFT)' python3 -B StressTests/bench-compare/compare.py $(BASE) $(COMPARE_ARGS)

check-bench-compare: python
	@python3 -B -m unittest discover -q -s StressTests/bench-compare

# A separate build, in which the library has places where errors, kills and pauses can be made to happen.
FAULT_POINTS = --traits FaultPoints --scratch-path .build/stress

# A fixed seed, and one that the report prints.
stress: system-packages
	$(SWIFT) build -c release --product stress $(FAULT_POINTS)
	.build/stress/release/stress all --seed 1 $(STRESS_ARGS)
	.build/stress/release/stress all --seed random $(STRESS_ARGS)
	@if grep -q 18CoreDataPostgreSQL .build/stress/release/stress; then $(POSTGRESQL_INSTALLED) && \
		Tests/postgresql-server.sh run .build/stress/release/stress $(ON_POSTGRESQL) --seed random $(STRESS_ARGS); fi

# The scenarios that get something done in some seconds on any machine, of a debug build, whose checks are all on: a minute or two.
stress-quick: system-packages
	$(SWIFT) build --product stress
	@! grep -q $(FAULT_POINT_SYMBOL) .build/debug/stress || { echo "The library has fault points." >&2; exit 1; }
	@! grep -q $(SCHEDULER_SYMBOL) .build/debug/stress || { echo "The library has a scheduler." >&2; exit 1; }
	.build/debug/stress bank ring append anomalies interleave nested deadlock cancel batch processes jobs \
		--seed random --seconds 2 --floor 1 $(STRESS_ARGS)
	@# Its fixed inputs take the first seconds.
	.build/debug/stress hostile --wide 0 --seed random --seconds 15 --floor 1 $(STRESS_ARGS)

# The scenarios that know PostgreSQL, beside a private server. `anomalies` takes as long as all orders of its steps take, some 20 seconds.
SECONDS ?= 5
ON_POSTGRESQL = bank ring append anomalies interleave nested converge cancel batch answers replica processes crash jobs models --store postgresql
stress-postgresql: system-packages postgresql-packages
	STRATA_POSTGRESQL=1 $(SWIFT) build --product stress
	Tests/postgresql-server.sh run .build/debug/stress $(filter-out jobs,$(ON_POSTGRESQL)) --seed random --seconds $(SECONDS) --floor 1 $(STRESS_ARGS)
	@# Its workers are processes that have to start first.
	Tests/postgresql-server.sh run .build/debug/stress jobs --store postgresql --seed random --seconds 12 --floor 1 $(STRESS_ARGS)

# Breaks something on purpose, again and again: each has to be caught. Some of it can be broken on PostgreSQL only: a program that has the store for
# it runs beside a server.
POSTGRESQL_INSTALLED = $(MAKE) --no-print-directory postgresql-packages
stress-red: system-packages
	$(SWIFT) build --product stress $(FAULT_POINTS)
	@if ! grep -q 18CoreDataPostgreSQL .build/stress/debug/stress; then .build/stress/debug/stress red; \
	else $(POSTGRESQL_INSTALLED) && Tests/postgresql-server.sh run .build/stress/debug/stress red; fi

# Without pauses where one thread drives all: it meets no other thread, and with each call of the handler that pauses the sanitizer
# loses one of the 65,536 places that it has for the calls of a thread.
stress-tsan: system-packages
	$(SWIFT) build --product stress --traits FaultPoints --sanitize=thread --scratch-path .build/tsan-stress -Xswiftc -DSTRATA_TSAN
	.build/tsan-stress/debug/stress anomalies interleave --seed random --floor 1 $(STRESS_ARGS)
	.build/tsan-stress/debug/stress bank ring append nested converge cancel batch answers models deadlock soak --seed random --floor 1 \
		--jitter 500 $(STRESS_ARGS)
	@if grep -q 18CoreDataPostgreSQL .build/tsan-stress/debug/stress; then $(POSTGRESQL_INSTALLED) && \
		Tests/postgresql-server.sh run .build/tsan-stress/debug/stress bank ring append nested converge cancel batch answers replica models \
		--store postgresql --seed random --floor 1 $(STRESS_ARGS); fi

# Without its search for leaks, which does not find what Swift points to with marked pointers, as `Data` does; `soak` looks for leaks.
stress-asan: system-packages
	$(SWIFT) build --product stress --traits FaultPoints --sanitize=address --scratch-path .build/asan
	ASAN_OPTIONS=detect_leaks=0 .build/asan/debug/stress append interleave nested cancel batch models crash powerloss iofault hostile --seed random --floor 1 $(STRESS_ARGS)

soak: system-packages
	$(SWIFT) build -c release --product stress
	.build/release/stress soak --seed random --seconds $$(( $(HOURS) * 3600 )) $(STRESS_ARGS)

# Builds a copy with all faults of StressTests/mutants behind one switch, and tries them one by one: first the suites beside each, then all
# tests, then stress. This takes a day; it goes on where it was stopped. Results go to .build/mutants-results.json, and with
# MUTANTS_ARGS=--publish to Docs/Results.md.
MUTANTS ?=
MUTANTS_ARGS ?=
mutants: system-packages postgresql-packages python
	SWIFT='$(SWIFT)' python3 -B StressTests/mutants/run --only '$(MUTANTS)' $(MUTANTS_ARGS)

# Faults that a program draws at random over the lines of code: N that compile, from SEED. Goes on where it was stopped, with the same SEED.
# Results and the report go to .build/mutants-sample. SAMPLE_PHASES= leaves out stress, and with it an optimised build.
N ?= 200
SAMPLE_PHASES ?= --stress
SEED ?= $(shell od -An -N3 -tu4 /dev/urandom | tr -d ' ')
mutants-sample: system-packages postgresql-packages python
	SWIFT='$(SWIFT)' python3 -B StressTests/mutants/sample --seed $(SEED) --count $(N) $(SAMPLE_PHASES) $(MUTANTS_ARGS)

# Whether each fault still fits the sources, and whether the tool that draws faults does what it says: seconds.
check-mutants: python
	@python3 -B StressTests/mutants/run --check
	@python3 -B StressTests/schedules/try-faults --check
	@python3 -B -m unittest discover -q -s StressTests/mutants/sample

TSAN = --sanitize=thread --scratch-path .build/tsan -Xswiftc -DSTRATA_TSAN

# A separate build: every module has to be compiled for the sanitizer, with mutexes that it knows (see StrataLocks).
# Random tests that stay on one thread run one of their seeds here: they take long under it, and it has nothing to see.
tsan: system-packages
	$(SWIFT) test $(TSAN) --no-parallel --filter '$(STEPPED_TARGETS)'
	STRATA_SEEDS=1-1 $(SWIFT) test $(TSAN) --skip '$(STEPPED_TARGETS)' $(TEST_ARGS)

lint:
	$(SWIFT) format lint --strict --recursive $(SOURCES)

format:
	$(SWIFT) format --in-place --recursive $(SOURCES)

# The picture of the targets in Docs/Architecture.md, and who may import whom.
layers:
	SWIFT='$(SWIFT)' Docs/layers.sh --write

check-layers:
	@SWIFT='$(SWIFT)' Docs/layers.sh --check

# Whether each step from a folder of CoreDataEssentials to a higher one stands in Docs/folders.txt, with a reason.
check-folders: python
	@python3 -B Docs/folders.py

# Whether tests that run on SQLite alone, in suites of what any store must show, are listed with the reason.
check-stores:
	@Tests/sqlite-only.sh

# Docs/Protocols.md says what the models are of.
check-protocols: spin
	StressTests/protocols/run

# Whether each number of a statement, such as CS-12 or M-31, leads to one, and whether `make help` names all targets.
check-pages: python
	@python3 -B Docs/check-pages.py

# The site: symbol graphs of the modules that clients see, without what classes and protocols inherit, and the pages of Docs/. A line of links
# above each page leads to the manual, the glossary and the reference of each product. A link that leads nowhere is an
# error. DOCS_BASE is the path at which a web server has the site, such as /strata.
FRAMEWORK = CoreData CoreDataTransformers CoreDataEssentials CoreDataEngineStores CoreDataModelFiles CoreDataBatches CoreDataClaims CoreDataCustomStores \
	CoreDataBinaryStore CoreDataHistory CoreDataMessages CoreDataContainer CoreDataFetchedResults CoreDataMigration CoreDataModelClasses \
	CoreDataOperations CoreDataReads CoreDataRows CoreDataKeyPaths CoreDataLocking CoreDataTenants
# The modules whose names a program gets with `import CoreData`: the site shows them all as parts of it.
SHOWN = $(FRAMEWORK) StrataPredicates StrataKeys
DOCS_BASE ?=
DOCS = $(CURDIR)/.build/docs
docs: system-packages
	rm -rf $(DOCS) && mkdir -p $(DOCS)/symbols
	$(SWIFT) build --target CoreDataJobs
	$(SWIFT) build --target SwiftData
	@# Without libpq there is no such target, and the site does without its names.
	@modules=$$($(SWIFT) build --show-bin-path)/Modules; names="$(SHOWN) SwiftData CoreDataJobs"; \
	if [ "$$STRATA_POSTGRESQL" != 0 ] && pkg-config --exists libpq; then \
		$(SWIFT) build --target CoreDataPostgreSQL || exit 1; \
		names="$$names CoreDataPostgreSQL"; \
	fi; \
	for module in $$names; do \
		swift-symbolgraph-extract -module-name $$module -target $$(uname -m)-unknown-linux-gnu -I $$modules -I Sources/CStrataSQLite \
			-I $$modules/../CStrataThreadLocals.build \
			-I Sources/CStrataPostgreSQL $$(pkg-config --cflags-only-I libpq 2> /dev/null) \
			-output-dir $(DOCS)/symbols -skip-synthesized-members -skip-inherited-docs -minimum-access-level public || exit 1; \
	done
	Docs/merge-symbols.py $(DOCS)/symbols $(SHOWN)
	Docs/site.sh $(DOCS)/CoreData.docc '$(DOCS_BASE)' CoreData SwiftData CoreDataJobs \
		$$([ ! -e $(DOCS)/symbols/CoreDataPostgreSQL.symbols.json ] || echo CoreDataPostgreSQL)
	Docs/symbol-links.py $(DOCS)/symbols $(DOCS)/CoreData.docc
	docc convert $(DOCS)/CoreData.docc --additional-symbol-graph-dir $(DOCS)/symbols --warnings-as-errors \
		--experimental-enable-custom-templates --fallback-display-name CoreData --fallback-bundle-identifier CoreData --transform-for-static-hosting \
		$(if $(DOCS_BASE),--hosting-base-path $(DOCS_BASE)) --output-path $(DOCS)/CoreData.doccarchive
	Docs/site.sh start $(DOCS)/CoreData.doccarchive
	@echo "The site is in $(DOCS)/CoreData.doccarchive ($$(du -sh $(DOCS)/CoreData.doccarchive | cut -f1)); make docs-preview shows it."

docs-preview: docs
	@echo "http://localhost:8000/documentation/coredata"
	python3 -m http.server --bind 127.0.0.1 --directory $(DOCS)/CoreData.doccarchive 8000

# Whether all public declarations of the last version are still there. The tool says how a break is announced.
check-api: docs
	@python3 -B Docs/check-api.py $(DOCS)/symbols

# Opens the landing page, three articles and five symbols in a browser, if there is one, and looks for what they say.
check-docs: docs
	Docs/check-site.sh $(DOCS)/CoreData.doccarchive

# The models of the repository, and the fixtures if they are there, as Swift that is compiled and as XML.
check-models: system-packages
	$(SWIFT) build --product strata
	Tests/models-in-swift.sh

# A program and a library as clients write them, with the plugin, in one release build of their own.
check-client: system-packages
	SWIFT='$(SWIFT)' Tests/client.sh .build/client

# Swift itself brings everything else: only SQLite's header and the tool that finds it are missing.
system-packages:
	@if ! command -v pkg-config > /dev/null || ! pkg-config --exists sqlite3; then \
		if ! command -v apt-get > /dev/null; then \
			echo "Install pkg-config and the development files of SQLite 3, please." >&2; exit 1; \
		fi; \
		sudo=; if [ "$$(id -u)" -ne 0 ]; then sudo=sudo; fi; \
		export DEBIAN_FRONTEND=noninteractive; \
		$$sudo apt-get update -qq && \
		$$sudo apt-get install -y -qq --no-install-recommends libsqlite3-dev pkg-config > /dev/null; \
	fi

# Installs the packages $(3) unless the programs $(1) are there, which a message calls $(2).
define INSTALLED
	@command -v $(1) > /dev/null || { \
		if ! command -v apt-get > /dev/null; then echo "Install $(2), please." >&2; exit 1; fi; \
		sudo=; if [ "$$(id -u)" -ne 0 ]; then sudo=sudo; fi; \
		export DEBIAN_FRONTEND=noninteractive; \
		$$sudo apt-get update -qq && $$sudo apt-get install -y -qq --no-install-recommends $(3) > /dev/null; \
	}
endef

python:
	$(call INSTALLED,python3,Python 3,python3)

valgrind:
	$(call INSTALLED,valgrind,Valgrind,valgrind)

spin:
	$(call INSTALLED,spin,spin,spin)
	$(call INSTALLED,cc,a C compiler,gcc libc6-dev)

# The store for PostgreSQL and its tests also need this: libpq's header, a server's programs, and openssl for its certificate. Debian's
# package of the server makes a cluster, and starts it on port 5432. That is not wanted, as the tests start their own servers. So the package
# is configured not to do so while it is installed.
NO_CLUSTER = /etc/postgresql-common/createcluster.d/strata.conf
postgresql-packages:
	@if ! pkg-config --exists libpq || ! command -v openssl > /dev/null \
		|| { ! ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 && ! command -v initdb > /dev/null; }; then \
		if ! command -v apt-get > /dev/null; then \
			echo "Install PostgreSQL, the development files of libpq, and openssl, please." >&2; exit 1; \
		fi; \
		sudo=; if [ "$$(id -u)" -ne 0 ]; then sudo=sudo; fi; \
		export DEBIAN_FRONTEND=noninteractive; \
		trap '$$sudo rm -f $(NO_CLUSTER); $$sudo rmdir $(dir $(NO_CLUSTER)) 2> /dev/null || true' EXIT; \
		$$sudo mkdir -p $(dir $(NO_CLUSTER)) && echo 'create_main_cluster = false' | $$sudo tee $(NO_CLUSTER) > /dev/null && \
		$$sudo apt-get update -qq && $$sudo apt-get install -y -qq --no-install-recommends libpq-dev postgresql openssl > /dev/null; \
	fi
