// A session can serve the stores of several schemas in turn. The pool of a store takes it over from another pool: see `ConnectionPool.Sharing`.
extension Connection {
    /// Ends the service to a pool: what the session knows of a store holds no longer.
    ///
    /// The session keeps the statements that it has prepared for the store. No other store uses them, because their keys contain the schema.
    func leavePool() {
        if servedPool > 0 { otherPlanAges[servedPool] = planAge }
        (servedPool, schema) = (0, "")
        explanation = nil
        isKnown = false
    }

    /// Begins to serve a pool.
    ///
    /// - Parameters:
    ///   - pool: The number of the pool.
    ///   - schema: The schema that the session shows.
    ///   - age: The age that current plans of the pool have.
    func join(pool: Int, schema: String, planAge age: Int) {
        // The tables of the schema may be others than those for which an earlier pool has let statements be prepared.
        if otherPlanAges[pool] == nil { prepared.removeAll(of: schema) }
        planAge = otherPlanAges[pool] ?? age
        (servedPool, self.schema) = (pool, schema)
    }

    /// Prepares statements for the tables of another schema from now on, for a session that no pool shares.
    ///
    /// - Parameter schema: The schema that the session shows.
    package func showsNow(_ schema: String) { self.schema = schema }
}
