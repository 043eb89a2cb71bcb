import CoreData

/// The results of a ``ResultsObserver`` that have one title.
///
/// ```swift
/// results.sections?.forEach { print($0.title, $0.count) }
/// ```
public struct ResultsSection<Element: PersistentModel, SectionTitle: Hashable>: Identifiable, RandomAccessCollection,
    Equatable
{
    /// The title.
    public let title: SectionTitle
    let elements: FetchResultsCollection<Element>

    /// The title.
    public var id: SectionTitle { title }
    /// The index of the first result: 0.
    public var startIndex: Int { 0 }
    /// The number of results.
    public var endIndex: Int { elements.endIndex }
    /// The result at an index.
    ///
    /// - Parameter position: The index in the section.
    /// - Returns: The result.
    public subscript(position: Int) -> Element { elements[position] }

    /// Compares titles and the identity of the results.
    ///
    /// - Parameters:
    ///   - lhs: One value.
    ///   - rhs: Another one.
    /// - Returns: Whether they are equal.
    public static func == (lhs: Self, rhs: Self) -> Bool {
        lhs.title == rhs.title && lhs.elements.objects.elementsEqual(rhs.elements.objects, by: ===)
    }
}

/// The results of a ``ResultsObserver`` by their titles.
///
/// The sections come in the order of their first results.
///
/// ```swift
/// let results = try ResultsObserver<Stop, String>(sectionBy: \.city, modelContext: context)
/// print(results.sections?[sectionTitle: "Rome"]?.count ?? 0)
/// ```
public struct SectionedResults<Element: PersistentModel, SectionTitle: Hashable>: RandomAccessCollection, Equatable {
    private let sections: [ResultsSection<Element, SectionTitle>]
    private let indices: [SectionTitle: Int]

    /// Groups results, whose titles are known, in one pass.
    init(_ results: FetchResultsCollection<Element>, _ titles: [SectionTitle]) {
        var groups: [(title: SectionTitle, objects: [NSManagedObject])] = []
        var indices: [SectionTitle: Int] = [:]
        for (object, title) in zip(results.objects, titles) {
            if let index = indices[title] {
                groups[index].objects.append(object)
            } else {
                indices[title] = groups.count
                groups.append((title, [object]))
            }
        }
        self.indices = indices
        sections = groups.map {
            ResultsSection(
                title: $0.title,
                elements: FetchResultsCollection(context: results.context, objects: $0.objects)
            )
        }
    }

    /// The titles, in the order of the sections.
    public var sectionTitles: [SectionTitle] { sections.map(\.title) }
    /// The index of the first section: 0.
    public var startIndex: Int { 0 }
    /// The number of sections.
    public var endIndex: Int { sections.count }
    /// The section at an index.
    ///
    /// - Parameter position: The index of the section.
    /// - Returns: The section.
    public subscript(position: Int) -> ResultsSection<Element, SectionTitle> { sections[position] }
    /// The section of a title; `nil` if no result has it.
    ///
    /// - Parameter title: The title.
    /// - Returns: The section.
    public subscript(sectionTitle title: SectionTitle) -> ResultsSection<Element, SectionTitle>? {
        indices[title].map { sections[$0] }
    }

    /// Whether a result has the title.
    ///
    /// - Parameter title: The title.
    /// - Returns: Whether there is one.
    public func contains(sectionTitle title: SectionTitle) -> Bool { indices[title] != nil }

    /// The index of the section of a title; `nil` if no result has it.
    ///
    /// - Parameter title: The title.
    /// - Returns: The index; `nil` if there is none.
    public func index(ofSectionTitled title: SectionTitle) -> Int? { indices[title] }

    /// Compares the sections.
    ///
    /// - Parameters:
    ///   - lhs: One value.
    ///   - rhs: Another one.
    /// - Returns: Whether they are equal.
    public static func == (lhs: Self, rhs: Self) -> Bool { lhs.sections == rhs.sections }
}
