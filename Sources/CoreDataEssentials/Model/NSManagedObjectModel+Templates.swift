import StrataPredicates

extension NSManagedObjectModel {
    /// A copy of the named query, with values in place of its variables.
    ///
    /// ```swift
    /// let model = NSManagedObjectModel()
    /// let venue = NSEntityDescription()
    /// venue.name = "Venue"
    /// model.entities = [venue]
    /// let template = NSFetchRequest<any NSFetchRequestResult>(entityName: "Venue")
    /// template.predicate = NSPredicate(format: "city.name == $TOWN")
    /// model.setFetchRequestTemplate(template, forName: "VenuesIn")
    /// let request = model.fetchRequestFromTemplate(withName: "VenuesIn", substitutionVariables: ["TOWN": "Lund"])
    /// ```
    ///
    /// - Parameters:
    ///   - name: The name of the query.
    ///   - variables: A value for each variable of the predicate, by name without the dollar sign; `NSNull` stands for
    ///     nil. If a variable has no value, then the program stops.
    /// - Returns: A request that can be changed, or `nil` if there is no query with that name.
    public func fetchRequestFromTemplate(
        withName name: String,
        substitutionVariables variables: [String: Any]
    ) -> NSFetchRequest<NSFetchRequestResult>? {
        guard let request = fetchRequestTemplate(forName: name)?.duplicate() else { return nil }
        request.predicate = request.predicate?.withSubstitutionVariables(variables)
        request.havingPredicate = request.havingPredicate?.withSubstitutionVariables(variables)
        return request
    }

    /// The named query as a request for results of a type; an addition to Apple's API.
    ///
    /// ```swift
    /// let venues = model.fetchRequestTemplate(forName: "venuesInLund", of: Venue.self)  // nil: the model has no such query
    /// ```
    ///
    /// It replaces `fetchRequestTemplate(forName: "venueFR") as? NSFetchRequest<Venue>` on Apple's platforms. On Linux
    /// an instance of a generic class has only its own type, so that such a cast gives `nil`.
    ///
    /// - Parameters:
    ///   - name: The name of the query.
    ///   - type: The type of the results: a class of managed objects, `NSManagedObjectID`, `NSDictionary`, or
    ///     `NSNumber`.
    /// - Returns: A copy that can be changed, or `nil` if there is no query with that name.
    public func fetchRequestTemplate<ResultType>(
        forName name: String,
        of type: ResultType.Type
    ) -> NSFetchRequest<ResultType>? {
        guard let template = fetchRequestTemplate(forName: name) else { return nil }
        let request = NSFetchRequest<ResultType>()
        request.copyProperties(from: template)
        return request
    }

    /// A copy of the named query for results of a type, with values for its variables; an addition to Apple's API.
    ///
    /// - Parameters:
    ///   - name: The name of the query.
    ///   - variables: See ``fetchRequestFromTemplate(withName:substitutionVariables:)``.
    ///   - type: The type of the results: a class of managed objects, `NSManagedObjectID`, `NSDictionary`, or
    ///     `NSNumber`.
    /// - Returns: A request that can be changed, or `nil` if there is no query with that name.
    public func fetchRequestFromTemplate<ResultType>(
        withName name: String,
        substitutionVariables variables: [String: Any],
        of type: ResultType.Type
    ) -> NSFetchRequest<ResultType>? {
        let filled = fetchRequestFromTemplate(withName: name, substitutionVariables: variables)
        return filled.map { filled in
            let request = NSFetchRequest<ResultType>()
            request.copyProperties(from: filled)
            return request
        }
    }
}
