/// An error of a container, a context or a fetch.
///
/// ```swift
/// do {
///     _ = try ModelContainer(for: Trip.self, configurations: ModelConfiguration(url: url))
/// } catch SwiftDataError.loadIssueModelContainer {
///     print("the store cannot be opened")
/// }
/// ```
public struct SwiftDataError: Error, Hashable, Sendable, CustomStringConvertible {
    enum Code: String {
        case includePendingChangesWithBatchSize, unsupportedPredicate, unsupportedKeyPath,
            sortingPendingChangesWithIdentifiers
        case unsupportedSortDescriptor, duplicateConfiguration, configurationFileNameTooLong
        case configurationFileNameContainsInvalidCharacters, configurationSchemaNotFoundInContainerSchema
        case loadIssueModelContainer, modelValidationFailure, missingModelContext, backwardMigration, unknownSchema
        case unknownDataStoreSchema, historyTokenExpired, invalidTransactionFetchRequest
    }

    let code: Code
    /// The reason, which is not compared.
    let reason: String

    init(_ code: Code, _ reason: String = "") {
        self.code = code
        self.reason = reason
    }

    /// The name of the error, with the reason if it is known.
    public var description: String {
        reason.isEmpty ? "SwiftDataError.\(code.rawValue)" : "SwiftDataError.\(code.rawValue): \(reason)"
    }

    /// Compares the names; the reasons are not compared.
    ///
    /// - Parameters:
    ///   - lhs: One value.
    ///   - rhs: Another one.
    /// - Returns: Whether they are equal.
    public static func == (lhs: SwiftDataError, rhs: SwiftDataError) -> Bool { lhs.code == rhs.code }

    /// Hashes the name.
    ///
    /// - Parameter hasher: The hasher.
    public func hash(into hasher: inout Hasher) { hasher.combine(code) }

    /// Lets a `catch` compare with one of the values.
    ///
    /// - Parameters:
    ///   - pattern: The value.
    ///   - error: The error that was thrown.
    /// - Returns: Whether the error is that value.
    public static func ~= (pattern: SwiftDataError, error: any Error) -> Bool { (error as? SwiftDataError) == pattern }

    /// A fetch in batches was asked to include unsaved changes.
    public static var includePendingChangesWithBatchSize: SwiftDataError { .init(.includePendingChangesWithBatchSize) }
    /// A predicate has a part that has no counterpart in stores.
    public static var unsupportedPredicate: SwiftDataError { .init(.unsupportedPredicate) }
    /// A key path is no stored property.
    public static var unsupportedKeyPath: SwiftDataError { .init(.unsupportedKeyPath) }
    /// Identifiers of unsaved objects were to be sorted.
    public static var sortingPendingChangesWithIdentifiers: SwiftDataError {
        .init(.sortingPendingChangesWithIdentifiers)
    }
    /// A sort descriptor names no stored property.
    public static var unsupportedSortDescriptor: SwiftDataError { .init(.unsupportedSortDescriptor) }
    /// Two configurations have the same name or file.
    public static var duplicateConfiguration: SwiftDataError { .init(.duplicateConfiguration) }
    /// The name of a configuration is too long for a file.
    public static var configurationFileNameTooLong: SwiftDataError { .init(.configurationFileNameTooLong) }
    /// The name of a configuration cannot be the name of a file.
    public static var configurationFileNameContainsInvalidCharacters: SwiftDataError {
        .init(.configurationFileNameContainsInvalidCharacters)
    }
    /// A configuration has a class that its container lacks.
    public static var configurationSchemaNotFoundInContainerSchema: SwiftDataError {
        .init(.configurationSchemaNotFoundInContainerSchema)
    }
    /// A store could not be opened.
    public static var loadIssueModelContainer: SwiftDataError { .init(.loadIssueModelContainer) }
    /// A model is not valid.
    public static var modelValidationFailure: SwiftDataError { .init(.modelValidationFailure) }
    /// A model belongs to no context.
    public static var missingModelContext: SwiftDataError { .init(.missingModelContext) }
    /// A store is newer than the schema.
    public static var backwardMigration: SwiftDataError { .init(.backwardMigration) }
    /// A schema is unknown.
    public static var unknownSchema: SwiftDataError { .init(.unknownSchema) }
    /// A store has a schema that the migration plan does not know.
    public static var unknownDataStoreSchema: SwiftDataError { .init(.unknownDataStoreSchema) }
    /// A history token is older than what was kept.
    public static var historyTokenExpired: SwiftDataError { .init(.historyTokenExpired) }
    /// A request for the history cannot be answered.
    public static var invalidTransactionFetchRequest: SwiftDataError { .init(.invalidTransactionFetchRequest) }
}
