import StrataPredicates

extension NSManagedObjectModel {
    /// A request like the named query, with values in place of its variables.
    ///
    /// ```swift
    /// let request = model.fetchRequestFromTemplate(withName: "VenuesIn", substitutionVariables: ["TOWN": "Lund"])
    /// ```
    ///
    /// - Parameters:
    ///   - name: The name of the query.
    ///   - variables: A value for each variable of the predicate, by name without the dollar sign; `NSNull` stands for nil.
    ///     A variable that is missing here is a programmer's error and stops the program.
    /// - Returns: A request that can be changed, or `nil` when there is no query with that name.
    public func fetchRequestFromTemplate(
        withName name: String,
        substitutionVariables variables: [String: Any]
    ) -> NSFetchRequest<NSFetchRequestResult>? {
        guard let request = fetchRequestTemplate(forName: name)?.duplicate() else { return nil }
        request.predicate = request.predicate?.withSubstitutionVariables(variables)
        request.havingPredicate = request.havingPredicate?.withSubstitutionVariables(variables)
        return request
    }
}
