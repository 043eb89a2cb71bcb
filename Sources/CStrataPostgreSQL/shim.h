// The system's libpq, as a module.
#ifndef STRATA_POSTGRESQL_SHIM_H
#define STRATA_POSTGRESQL_SHIM_H

#include <libpq-fe.h>

// These functions read the fields of an error report, because Swift does not import macros that are character
// constants.
static inline const char *strata_pq_state(const PGresult *r) { return PQresultErrorField(r, PG_DIAG_SQLSTATE); }
static inline const char *strata_pq_severity(const PGresult *r) { return PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED); }
static inline const char *strata_pq_message(const PGresult *r) { return PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY); }
static inline const char *strata_pq_constraint(const PGresult *r) { return PQresultErrorField(r, PG_DIAG_CONSTRAINT_NAME); }
static inline const char *strata_pq_table(const PGresult *r) { return PQresultErrorField(r, PG_DIAG_TABLE_NAME); }

// Ignores the server's notices, which libpq would print.
static void strata_pq_ignore(void *unused, const PGresult *notice) { (void)unused; (void)notice; }
static inline void strata_pq_be_quiet(PGconn *c) { PQsetNoticeReceiver(c, strata_pq_ignore, 0); }

#endif
