import Foundation

/// A problem of a model, or of the file that it is read from: its place and its reason.
///
/// Callers receive it as a `CocoaError` whose description names the entity and the property.
package struct ModelError: Error, Equatable {
    /// The kinds of problems, each with the error code that callers see.
    package enum Kind: Equatable, Sendable {
        /// There is no file. Code 260, `fileReadNoSuchFile`.
        case missing

        /// The file is not a model, or is damaged. Code 259, `fileReadCorruptFile`.
        case malformed

        /// The file is larger than any model. Code 263, `fileReadTooLarge`.
        case tooLarge

        /// This form of model is not supported. Code 3328, `featureUnsupported`.
        case unsupported

        /// The model contradicts itself. Code 134060, `coreData`.
        case invalid
    }

    package var kind: Kind
    package var entity: String?
    package var property: String?
    package var reason: String
    package var file: URL?
    /// The line of the file, if its form has lines.
    package var line: Int?
    /// The class and property that declare it, if a model is made of classes.
    package var source: String?

    package init(
        _ kind: Kind,
        class source: String? = nil,
        entity: String? = nil,
        property: String? = nil,
        line: Int? = nil,
        _ reason: String
    ) {
        self.source = source
        self.kind = kind
        self.entity = entity
        self.property = property
        self.line = line
        self.reason = reason
    }

    /// The entity, the property and their problem.
    package var sentence: String {
        var place = ""
        if let property { place += "property \"\(property)\"" }
        if let entity { place += (place.isEmpty ? "" : " of ") + "entity \"\(entity)\"" }
        if let source { place = source }
        return place.isEmpty ? reason : "\(place): \(reason)"
    }

    /// One sentence for readers.
    package var message: String {
        let subject = file.map { "The model at \($0.path)" } ?? "The model"
        return "\(subject) cannot be used: \(sentence)\(line.map { " (line \($0))" } ?? "")"
    }
}
