import Foundation
import StrataRows
import StrataSQL

extension PostgreSQLMigration {
    /// Makes the foreign keys of the new model, if the store had those of the old one.
    ///
    /// - Throws: `migration` (134110) with the number of rows for each relationship, if some lead nowhere.
    func makeForeignKeys() throws {
        guard hadForeignKeys else { return }
        let violations = try ForeignKeys(destination, connection).make()
        guard !violations.isEmpty else { return }
        throw ForeignKeys.failure(at: request.url, dueTo: violations, place: place)
    }
}

extension ForeignKeys {
    /// The error of a migration whose rows do not allow foreign keys.
    static func failure(at url: URL, dueTo violations: [Violation], place: String) -> CocoaError {
        MigrationErrors.rows(
            url,
            violations.map {
                RowFinding(entity: $0.key.entity, property: $0.key.relationship, reason: reason($0.count))
            },
            place: place
        )
    }
}
